/**
 * What those who watch have heard, compared with the blocks, after node and watchers were killed again and again: no gap, no
 * repetition, no disorder. EVENT_CHANGES=10000 EVENT_KILLS=50 makes it longer; EVENT_SEED repeats its dice.
 */
import { fromBinary } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import test, { type ExecutionContext } from "ava";
import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { BlockHeaderSchema, type Transaction, TransactionBodySchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { AccessMode } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import { programAddress } from "../../src/storage/changes/write.js";
import { callerOf } from "../helpers/process/caller.js";
import { testKey, type TestKey } from "../helpers/chain/keys.js";
import { networkOf, type NodeProcess, startProcessOf } from "../helpers/nodes/network.js";
import { ask } from "../helpers/wire/plain-client.js";
import { silentPeer } from "../helpers/nodes/start-node.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";
import { createPublic, type Operation, signTransaction } from "../helpers/chain/transactions.js";
import { until } from "../helpers/nodes/until.js";

const changes = Number(process.env.EVENT_CHANGES ?? 300);
const kills = Number(process.env.EVENT_KILLS ?? 6);
const seed = Number(process.env.EVENT_SEED ?? Date.now() % 1_000_000);

const [authority, alice] = [testKey(1), testKey(2)];
const { genesis } = networkOf(authority);

/** Programs that are changed by turns; every other one is private. */
const programCount = 10;
/** Transactions between which nodes and connections are killed. */
const width = 20;

/** Numbers from 0 to 1 that are the same for a seed. */
function createDice(start: number): () => number {
  let state = start;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}

const nameOf = (index: number): string => `program ${index}`;
const addressOf = (index: number): string => programAddress(alice.publicKey, nameOf(index), BigInt(index + 1), "");

function changeAt(index: number): Transaction {
  const sign = (operation: Operation): Transaction => signTransaction(alice, index + 1, operation, { expiresMs });
  if (index >= programCount) {
    const [storageAddress, field] = [addressOf(index % programCount), `f${index % 7}`];
    return sign({ case: "setField", value: { storageAddress, field, value: String(index) } });
  }
  return index % 2 === 0
    ? sign(createPublic(nameOf(index), "{}"))
    : sign({ case: "createProgram", value: { programName: nameOf(index), access: { mode: AccessMode.OWNER } } });
}
const expiresMs = Date.now() + 3_500_000;

/** Somebody who watches, loses his connection now and then, and goes on after the last whole event that he has. */
function watch(t: ExecutionContext, port: () => number, query: string, key?: TestKey) {
  const heard: string[] = [];
  let last = "";
  const over = new AbortController();
  let cut: () => void = () => undefined;

  async function read(): Promise<void> {
    const headers = {
      ...(key === undefined ? {} : callerOf(key).headers()),
      ...(last !== "" && { "last-event-id": last }),
    };
    const request = httpRequest({ host: "127.0.0.1", port: port(), path: `/events${query}`, headers, agent: false });
    cut = () => request.destroy();
    request.end();
    const [response] = (await once(request, "response")) as [AsyncIterable<Buffer> & { statusCode?: number }];
    let rest = "";
    for await (const piece of response) {
      const events = (rest + piece.toString()).split("\n\n");
      rest = events.pop()!;
      for (const text of events) {
        const { event, id, data } = Object.fromEntries(
          text.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]),
        ) as Record<string, string | undefined>;
        if (event !== undefined && id !== undefined) {
          last = id;
          heard.push(...(event === "progress" ? [] : [`${id} ${describe(event, data!)}`]));
        }
      }
    }
  }
  void (async () => {
    while (!over.signal.aborted) {
      await read().catch(() => undefined);
      await sleep(5);
    }
  })();
  t.teardown(() => {
    over.abort();
    cut();
  });
  return { heard, cut: () => cut(), block: () => Number(last.split(".")[0]) - (last.includes(".") ? 1 : 0) };
}

function describe(event: string, data: string): string {
  const told = JSON.parse(data) as Record<string, Record<string, unknown>>;
  const { hash, transactionHash, storageAddress } = told[event] ?? {};
  return `${event} ${String(hash ?? transactionHash)} ${event === "program" ? String(storageAddress) : ""}`.trim();
}

/** What there was to hear, made of the blocks alone. */
async function readLog(rpcUrl: string) {
  const chain = createClient(ChainService, createGrpcTransport({ baseUrl: rpcUrl }));
  const log: { readonly text: string; readonly address: string | undefined; readonly kind: string }[] = [];
  for await (const { block } of chain.listBlocks({ fromNumber: 1n }, { headers: callerOf(alice).headers() })) {
    const { number } = fromBinary(BlockHeaderSchema, block!.header);
    for (const [i, { body }] of block!.transactions.entries()) {
      const hash = sha256(body);
      const { nonce, operation } = fromBinary(TransactionBodySchema, body);
      const { operation: change } = operation.value as { operation: Operation };
      const address =
        change.case === "createProgram"
          ? addressOf(Number(nonce) - 1)
          : (change.value as { storageAddress: string }).storageAddress;
      log.push({ text: `${number}.${2 * i} transaction ${hash}`, address, kind: "transaction" });
      log.push({ text: `${number}.${2 * i + 1} program ${hash} ${address}`, address, kind: "program" });
    }
    log.push({ text: `${number} block ${sha256(block!.header)}`, address: undefined, kind: "block" });
  }
  return log;
}

test("killed as often as one likes, node and watchers: what was heard is what is in the blocks", async (t) => {
  t.timeout(60 * 60_000);
  t.log(`seed ${seed}, ${changes} changes, ${kills} kills`);
  const dice = createDice(seed);
  const dir = await temporaryDirectory(t);
  const start = async (): Promise<NodeProcess> =>
    await startProcessOf(t, {
      ...{ key: authority, genesis, dir, seeds: [silentPeer] },
      flags: { "rate-limit": "0", "sender-bytes-per-minute": "0", "sender-programs-per-minute": "0" },
    });
  let node = await start();
  const port = (): number => node.port;
  const kinds = "kinds=block&kinds=transaction&kinds=program";
  const watchers = {
    owner: watch(t, port, `?fromBlock=1&${kinds}`, alice),
    stranger: watch(t, port, `?fromBlock=1&${kinds}`),
    "of one program": watch(t, port, `?fromBlock=1&addresses=${addressOf(2)}&kinds=program`),
  };

  /** Hands one in until the node says that it has it. */
  async function submit({ body, signature }: Transaction): Promise<void> {
    const [one, two] = [body, signature].map((bytes) => Buffer.from(bytes).toString("base64"));
    const text = JSON.stringify({ transaction: { body: one, signature: two } });
    const request = { method: "POST", headers: { "Content-Type": "application/json" }, body: text };
    await until(async () => {
      const answer = await ask(port(), "/chain/transactions", request).catch(() => undefined);
      t.true(answer === undefined || answer.status === 200 || answer.status >= 429, answer?.text);
      return answer?.status === 200;
    }, `a transaction is taken`);
  }

  let killed = 0;
  for (let index = 0; index < changes; index += width) {
    const count = Math.min(width, changes - index);
    // One after the other: nonces rise.
    const handedIn = (async () => {
      for (let i = 0; i < count; i++) {
        await submit(changeAt(index + i));
      }
    })();
    for (; killed < Math.floor((kills * (index + count)) / changes); killed++) {
      for (const { cut } of Object.values(watchers)) {
        if (dice() < 0.7) {
          cut();
        }
      }
      await sleep(50 * dice());
      if (dice() < 0.5) {
        node.child.kill("SIGKILL");
        await node.ended;
        node = await start();
      }
    }
    await handedIn;
  }
  t.is(killed, kills);
  const last = sha256(changeAt(changes - 1).body);
  await until(async () => (await ask(port(), `/chain/transactions/${last}`)).text.includes('"included"'));

  const log = await readLog(`http://127.0.0.1:${port()}`);
  t.is(log.filter(({ kind }) => kind === "program").length, changes);
  const head = Number(log.at(-1)!.text.split(" ")[0]);
  const isPublic = (address: string | undefined): boolean =>
    Array.from({ length: programCount / 2 }, (_, i) => addressOf(2 * i)).includes(address ?? "");
  const expected = {
    owner: log,
    stranger: log.filter(({ kind, address }) => kind !== "program" || isPublic(address)),
    "of one program": log.filter(({ kind, address }) => kind === "program" && address === addressOf(2)),
  };
  for (const [name, { heard, block }] of Object.entries(watchers)) {
    const texts = expected[name as keyof typeof expected].map(({ text }) => text);
    await until(() => heard.length >= texts.length || block() >= head, `${name} has heard all`);
    t.deepEqual(heard, texts, name);
  }
});
