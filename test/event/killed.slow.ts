/**
 * Compares received events with the blocks, after nodes and connections were killed repeatedly: no gap, no repetition,
 * no wrong order. EVENT_CHANGES=10000 EVENT_KILLS=50 run longer; EVENT_SEED repeats a run.
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

/** Number of programs that are changed in rotation; every second one is private. */
const programCount = 10;
/** Number of transactions in a batch; nodes and connections are killed during a batch. */
const batchSize = 20;

/** Creates a generator of pseudorandom numbers from 0 to 1; equal seeds yield equal numbers. */
function createRandom(start: number): () => number {
  let state = start;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}

const nameOf = (index: number): string => `program ${index}`;
const addressOf = (index: number): string => programAddress(alice.publicKey, nameOf(index), BigInt(index + 1), "");

/** Returns the transaction with this index: the first ones create the programs, the others change them. */
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

/** Watches events. After a lost connection, reconnects and resumes after the last complete event. */
function watch(t: ExecutionContext, port: () => number, query: string, key?: TestKey) {
  const received: string[] = [];
  let last = "";
  const stopped = new AbortController();
  let disconnect: () => void = () => undefined;

  async function read(): Promise<void> {
    const headers = {
      ...(key === undefined ? {} : callerOf(key).headers()),
      ...(last !== "" && { "last-event-id": last }),
    };
    const request = httpRequest({ host: "127.0.0.1", port: port(), path: `/events${query}`, headers, agent: false });
    disconnect = () => request.destroy();
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
          received.push(...(event === "progress" ? [] : [`${id} ${describe(event, data!)}`]));
        }
      }
    }
  }
  void (async () => {
    while (!stopped.signal.aborted) {
      await read().catch(() => undefined);
      await sleep(5);
    }
  })();
  t.teardown(() => {
    stopped.abort();
    disconnect();
  });
  const completedBlock = () => Number(last.split(".")[0]) - (last.includes(".") ? 1 : 0);
  return { received, disconnect: () => disconnect(), completedBlock };
}

function describe(event: string, data: string): string {
  const message = JSON.parse(data) as Record<string, Record<string, unknown>>;
  const { hash, transactionHash, storageAddress } = message[event] ?? {};
  return `${event} ${String(hash ?? transactionHash)} ${event === "program" ? String(storageAddress) : ""}`.trim();
}

/** Returns the expected events, derived from the blocks alone. */
async function readExpected(rpcUrl: string) {
  const chain = createClient(ChainService, createGrpcTransport({ baseUrl: rpcUrl }));
  const events: { readonly text: string; readonly address: string | undefined; readonly kind: string }[] = [];
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
      events.push({ text: `${number}.${2 * i} transaction ${hash}`, address, kind: "transaction" });
      events.push({ text: `${number}.${2 * i + 1} program ${hash} ${address}`, address, kind: "program" });
    }
    events.push({ text: `${number} block ${sha256(block!.header)}`, address: undefined, kind: "block" });
  }
  return events;
}

test("watchers receive exactly the events of the blocks, although node and connections are killed", async (t) => {
  t.timeout(60 * 60_000);
  t.log(`seed ${seed}, ${changes} changes, ${kills} kills`);
  const random = createRandom(seed);
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

  /** Submits a transaction until the node acknowledges it. */
  async function submit({ body, signature }: Transaction): Promise<void> {
    const [encodedBody, encodedSignature] = [body, signature].map((bytes) => Buffer.from(bytes).toString("base64"));
    const text = JSON.stringify({ transaction: { body: encodedBody, signature: encodedSignature } });
    const request = { method: "POST", headers: { "Content-Type": "application/json" }, body: text };
    await until(async () => {
      const response = await ask(port(), "/chain/transactions", request).catch(() => undefined);
      t.true(response === undefined || response.status === 200 || response.status >= 429, response?.text);
      return response?.status === 200;
    }, "a transaction is acknowledged");
  }

  let killed = 0;
  for (let index = 0; index < changes; index += batchSize) {
    const count = Math.min(batchSize, changes - index);
    // Submitted one after the other, because nonces must increase.
    const submitted = (async () => {
      for (let i = 0; i < count; i++) {
        await submit(changeAt(index + i));
      }
    })();
    for (; killed < Math.floor((kills * (index + count)) / changes); killed++) {
      for (const { disconnect } of Object.values(watchers)) {
        if (random() < 0.7) {
          disconnect();
        }
      }
      await sleep(50 * random());
      if (random() < 0.5) {
        node.child.kill("SIGKILL");
        await node.ended;
        node = await start();
      }
    }
    await submitted;
  }
  t.is(killed, kills);
  const last = sha256(changeAt(changes - 1).body);
  await until(async () => (await ask(port(), `/chain/transactions/${last}`)).text.includes('"included"'));

  const events = await readExpected(`http://127.0.0.1:${port()}`);
  t.is(events.filter(({ kind }) => kind === "program").length, changes);
  const head = Number(events.at(-1)!.text.split(" ")[0]);
  const isPublic = (address: string | undefined): boolean =>
    Array.from({ length: programCount / 2 }, (_, i) => addressOf(2 * i)).includes(address ?? "");
  const expected = {
    owner: events,
    stranger: events.filter(({ kind, address }) => kind !== "program" || isPublic(address)),
    "of one program": events.filter(({ kind, address }) => kind === "program" && address === addressOf(2)),
  };
  for (const [name, { received, completedBlock }] of Object.entries(watchers)) {
    const texts = expected[name as keyof typeof expected].map(({ text }) => text);
    await until(() => received.length >= texts.length || completedBlock() >= head, `${name} has received all events`);
    t.deepEqual(received, texts, name);
  }
});
