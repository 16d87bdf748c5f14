/**
 * Real caches in front of a real node: during random writes and reads, a cache sends each caller the response that the
 * node itself sends. So it shows no private data to others, and no stale data.
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
import { startMember } from "../helpers/nodes/start-node.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { commit, type Operation, signTransaction, signZk } from "../helpers/chain/transactions.js";
import { until } from "../helpers/nodes/until.js";
import { testUnless, whyNot } from "../helpers/nodes/when.js";

const owner = testKey(30);
const friend = testKey(31);
const callers = { anonymous: undefined, owner: callerOf(owner), friend: callerOf(friend) };
type CallerName = keyof typeof callers;

const modes = [AccessMode.PUBLIC, AccessMode.OWNER, AccessMode.RESTRICTED] as const;
const letters = ["a", "b", "c", "d", "e", "f", "g", "h"] as const;
const steps = Number(process.env["CACHE_STEPS"] ?? 40);

/** Creates a function that picks random items, reproducible by the seed. */
function createRandom(seed: number): <T>(items: readonly T[]) => T {
  let state = seed;
  return (items) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return items[Math.floor((state / 2 ** 32) * items.length)]!;
  };
}

/** Starts a node, and returns functions that write to it. */
async function startWritable(t: Teardown) {
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
  readonly cache: Cache;
}

/** The number of responses that a cache sent without a request to the node. */
interface Counts {
  fresh: number;
}

function askAs(caller: CallerName, port: number, path: string, headers = {}): Promise<PlainResponse> {
  return ask(port, path, { headers: { ...callers[caller]?.headers(), ...headers } });
}

/** The part of a response that does not change between requests. Signed heads do. */
function comparable({ status, text }: PlainResponse, path: string): string {
  const stable = path === "/chain/head" ? text.replace(/,"head":.*?\}/, "") : text;
  return `${status} ${stable}`;
}

/** Requests a path from a cache, and from the node before and afterwards. The responses must be equal. */
async function compare(
  t: ExecutionContext,
  port: number,
  { caller, path, cache }: Read,
  counts: Counts,
): Promise<void> {
  // A cache that merges concurrent requests may send the public response to a signed caller.
  const names: CallerName[] = cache.mergesCallers ? [caller, "anonymous"] : [caller];
  const askNode = () => Promise.all(names.map((name) => askAs(name, port, path)));
  const before = await askNode();
  const cached = await askAs(caller, cache.port, path);
  const direct = [...before, ...(await askNode())];
  const expected = direct.map((response) => comparable(response, path));
  t.true(
    expected.includes(comparable(cached, path)),
    `${caller} ${path}: ${comparable(cached, path)}, not ${expected[0]}`,
  );
  const cacheControl = cached.headers["cache-control"];
  // An immutable response may be from the time of another caller.
  t.true(
    cacheControl?.endsWith("immutable") === true ||
      direct.some(({ headers }) => headers["cache-control"] === cacheControl),
    `${caller} ${path}: ${cacheControl}`,
  );
  // nginx reports HIT; Varnish adds the id of the request that filled the cache.
  const { "x-cache": nginx, "x-varnish": varnish } = cached.headers as Record<string, string | undefined>;
  if (nginx === "HIT" || (varnish?.includes(" ") === true && !/no-cache/.test(cached.headers["cache-control"]!))) {
    counts.fresh++;
  }
}

async function fuzz(
  t: ExecutionContext,
  start: (t: Teardown, port: number) => Promise<Cache>,
): Promise<{ fresh: number; notModified: number | undefined }> {
  const seed = Number(process.env["CACHE_SEED"] ?? randomInt(1, 2 ** 31));
  t.log(`CACHE_SEED=${seed}`);
  const pick = createRandom(seed);
  const { node, hashes, write, commit: addCommitment } = await startWritable(t);
  const { port } = node;
  const cache = await start(t, port);
  const counts: Counts = { fresh: 0 };

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
    // Several concurrent requests for one path, which a cache may merge.
    const path = await pathOf();
    const names = Object.keys(callers) as CallerName[];
    for (let round = 0; round < 3; round++) {
      const reads = Array.from({ length: 4 }, () => ({ caller: pick(names), path, cache }));
      await Promise.all(reads.map((read) => compare(t, port, read, counts)));
    }
  }
  // Blocks with only commitments, and transactions without bodies, are immutable.
  const { hash } = await askJson<{ hash: string }>(port, "/chain/blocks/4");
  for (let n = 0; n < 3; n++) {
    await compare(t, port, { caller: "anonymous", path: `/chain/blocks/hash/${hash}`, cache }, counts);
  }
  // Other responses are stored and revalidated: these ones are still valid, so the node sends 304.
  for (const path of ["/genesis", "/version"]) {
    for (let n = 0; n < 3; n++) {
      await compare(t, port, { caller: "anonymous", path, cache }, counts);
    }
  }
  return { ...counts, notModified: await cache.notModified?.() };
}

testUnless(whyNot("nginx", "-v"))("nginx: serves no private and no stale data", async (t) => {
  t.timeout(5 * 60_000);
  const { fresh } = await fuzz(t, startNginxCache);
  t.true(fresh > 1, `only ${fresh} responses came from the cache`);
});

const testVarnish = testUnless(whyNot("varnishd", "-V") ?? whyNot("varnishstat", "-V"));
for (const [name, start] of [
  ["Varnish", startVarnish],
  ["Varnish without rules for identities", startPlainVarnish],
] as const) {
  testVarnish(`${name}: serves no private and no stale data`, async (t) => {
    t.timeout(5 * 60_000);
    const { fresh, notModified } = await fuzz(t, start);
    t.true(fresh > 1, `only ${fresh} responses came from the cache`);
    t.true(notModified! >= 4, `only ${notModified} responses were revalidated`);
  });
}
