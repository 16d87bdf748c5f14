/**
 * Real caches in front of a real node: whatever is written and whoever asks in between, a cache gives each caller what the
 * node itself gives him at that moment. So nothing private crosses it, and nothing old comes out of it.
 */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import type { ExecutionContext } from "ava";
import { randomInt } from "node:crypto";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { AccessMode } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { programAddress } from "../../src/storage/changes/write.js";
import { type Cache, startNginxCache, startPlainVarnish, startVarnish } from "../helpers/process/caches.js";
import { callerOf } from "../helpers/process/caller.js";
import { testKey } from "../helpers/chain/keys.js";
import { ask, askJson, type PlainResponse } from "../helpers/wire/plain-client.js";
import { startMember } from "../helpers/nodes/start-member.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { commit, type Operation, signTransaction, signZk } from "../helpers/chain/transactions.js";
import { until } from "../helpers/nodes/until.js";
import { testUnless, whyNot } from "../helpers/nodes/when.js";

const owner = testKey(30);
const friend = testKey(31);
const callers = { nobody: undefined, owner: callerOf(owner), friend: callerOf(friend) };
type CallerName = keyof typeof callers;

const modes = [AccessMode.PUBLIC, AccessMode.OWNER, AccessMode.RESTRICTED] as const;
const letters = ["a", "b", "c", "d", "e", "f", "g", "h"] as const;
const steps = Number(process.env["CACHE_STEPS"] ?? 40);

/** Numbers that are the same again for the same seed. */
function createRandom(seed: number): <T>(items: readonly T[]) => T {
  let state = seed;
  return (items) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return items[Math.floor((state / 2 ** 32) * items.length)]!;
  };
}

/** A node, and somebody who writes to it. */
async function startWritten(t: Teardown) {
  const node = await startMember(t);
  const client = createClient(ChainService, createGrpcTransport({ baseUrl: node.rpcUrl }));
  let nonce = 0;
  const hashes: string[] = [];
  async function submit(
    transaction: Parameters<typeof client.submitTransaction>[0]["transaction"] & object,
  ): Promise<void> {
    const { hash } = await client.submitTransaction({ transaction });
    hashes.push(hash);
    await until(async () => (await askJson(node.port, `/chain/transactions/${hash}`))["status"] !== "pending");
  }
  return {
    ...{ node, hashes },
    write: (operation: Operation): Promise<void> => submit(signTransaction(owner, ++nonce, operation)),
    commit: (commitment: string): Promise<void> => submit(signZk(owner, ++nonce, commit(commitment))),
  };
}

interface Read {
  readonly caller: CallerName;
  readonly path: string;
  readonly door: Cache;
}

/** How often an answer came from a cache without a question, by what the cache says of it. */
interface Seen {
  kept: number;
}

function askAs(caller: CallerName, port: number, path: string, headers = {}): Promise<PlainResponse> {
  return ask(port, path, { headers: { ...callers[caller]?.headers(), ...headers } });
}

/** What is the same from one answer to the next: of the head, an authority says anew that it is. */
function comparable({ status, text }: PlainResponse, path: string): string {
  const shown = path === "/chain/head" ? text.replace(/,"head":.*?\}/, "") : text;
  return `${status} ${shown}`;
}

/** Asks a cache, and the node before and after. */
async function compare(t: ExecutionContext, port: number, { caller, path, door }: Read, seen: Seen): Promise<void> {
  // Where a cache joins those who ask at the same time, somebody may be given what everybody may have.
  const meant: CallerName[] = door.joinsCallers ? [caller, "nobody"] : [caller];
  const askNode = () => Promise.all(meant.map((name) => askAs(name, port, path)));
  const before = await askNode();
  const cached = await askAs(caller, door.port, path);
  const direct = [...before, ...(await askNode())];
  const expected = direct.map((answer) => comparable(answer, path));
  t.true(
    expected.includes(comparable(cached, path)),
    `${caller} ${path}: ${comparable(cached, path)}, not ${expected[0]}`,
  );
  const told = cached.headers["cache-control"];
  // What is everybody's for good may have been given to somebody else before.
  t.true(
    told?.endsWith("immutable") === true || direct.some(({ headers }) => headers["cache-control"] === told),
    `${caller} ${path}: ${told}`,
  );
  // nginx names what it did, Varnish the request that an answer was first made for.
  const { "x-cache": nginx, "x-varnish": varnish } = cached.headers as Record<string, string | undefined>;
  if (nginx === "HIT" || (varnish?.includes(" ") === true && !/no-cache/.test(cached.headers["cache-control"]!))) {
    seen.kept++;
  }
}

async function fuzz(
  t: ExecutionContext,
  start: (t: Teardown, port: number) => Promise<Cache>,
): Promise<{ kept: number; notModified: number | undefined }> {
  const seed = Number(process.env["CACHE_SEED"] ?? randomInt(1, 2 ** 31));
  t.log(`CACHE_SEED=${seed}`);
  const pick = createRandom(seed);
  const { node, hashes, write, commit: addCommitment } = await startWritten(t);
  const { port } = node;
  const door = await start(t, port);
  const seen: Seen = { kept: 0 };

  const programs: string[] = [];
  for (const [n, mode] of modes.entries()) {
    const programName = `cached-${n}`;
    programs.push(programAddress(owner.publicKey, programName, BigInt(n + 1), ""));
    const data = { data: { case: "json" as const, value: `{"secret":"first ${n}"}` } };
    await write({ case: "createProgram", value: { programName, data, access: { mode, allowed: [friend.publicKey] } } });
  }
  await addCommitment(`0x${"1".padStart(64, "0")}`);

  const changes = [
    () => {
      const value = JSON.stringify(`marker ${pick(letters)}${pick(letters)}`);
      return write({ case: "setField", value: { storageAddress: pick(programs), field: "secret", value } });
    },
    () => {
      const access = { mode: pick(modes), allowed: [friend.publicKey] };
      return write({ case: "updateAccess", value: { storageAddress: pick(programs), access } });
    },
  ];
  const pathOf = async (): Promise<string> => {
    const program = `/storage-program/${pick(programs)}`;
    const { hash, number } = await askJson<{ hash: string; number: number }>(port, "/chain/head");
    return pick([
      ...["", "/all", "/fields", "/field/secret", "/has/secret"].map((part) => `${program}${part}`),
      ...[`/storage-program/owner/${owner.publicKey}`, "/storage-program/search?q=cached", "/chain/head"],
      ...[`/chain/blocks/${number}`, `/chain/blocks/hash/${hash}`, "/zk/merkle-root", "/genesis", "/version"],
      ...["", "?withBody=true"].map((query) => `/chain/transactions/${pick(hashes)}${query}`),
      `/state/proof?storageAddress=${pick(programs)}&fields=secret`,
      "/nowhere",
    ]);
  };
  for (let step = 0; step < steps; step++) {
    if (pick([true, false, false])) {
      await pick(changes)();
    }
    // The same path at once for several, who may have to wait for each other in a cache.
    const path = await pathOf();
    const names = Object.keys(callers) as CallerName[];
    for (let round = 0; round < 3; round++) {
      const reads = Array.from({ length: 4 }, () => ({ caller: pick(names), path, door }));
      await Promise.all(reads.map((read) => compare(t, port, read, seen)));
    }
  }
  // Each block with nothing but a commitment, and each transaction without its body, is kept for good.
  const { hash } = await askJson<{ hash: string }>(port, "/chain/blocks/4");
  for (let n = 0; n < 3; n++) {
    await compare(t, port, { caller: "nobody", path: `/chain/blocks/hash/${hash}`, door }, seen);
  }
  // What may change is kept, and asked for anew: whatever was picked above, these are not made again.
  for (const path of ["/genesis", "/version"]) {
    for (let n = 0; n < 3; n++) {
      await compare(t, port, { caller: "nobody", path, door }, seen);
    }
  }
  return { ...seen, notModified: await door.notModified?.() };
}

testUnless(whyNot("nginx", "-v"))("nginx: no private byte crosses, and nothing old is served", async (t) => {
  t.timeout(5 * 60_000);
  const { kept } = await fuzz(t, startNginxCache);
  t.true(kept > 1, `only ${kept} answers came from the cache`);
});

const testVarnish = testUnless(whyNot("varnishd", "-V") ?? whyNot("varnishstat", "-V"));
for (const [name, start] of [
  ["Varnish", startVarnish],
  ["Varnish that knows of no identities", startPlainVarnish],
] as const) {
  testVarnish(`${name}: no private byte crosses, and nothing old is served`, async (t) => {
    t.timeout(5 * 60_000);
    const { kept, notModified } = await fuzz(t, start);
    t.true(kept > 1, `only ${kept} answers came from the cache`);
    t.true(notModified! >= 4, `only ${notModified} answers were found to be right still`);
  });
}
