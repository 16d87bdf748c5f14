/** The log of blocks as events: what it reads, what it keeps, and what it asks of access rules. */
import { create } from "@bufbuild/protobuf";
import test from "ava";
import {
  BlockHeaderSchema,
  type TransactionBody,
  TransactionBodySchema,
} from "../../gen/gatehouse/chain/v1/block_pb.js";
import { EventKind, WatchRequestSchema } from "../../gen/gatehouse/event/v1/event_pb.js";
import { type SourceBlock, type EventMessage, positionOfBlock } from "../../src/event/block-events.js";
import { createBlockLog } from "../../src/event/block-log.js";
import { createEvents } from "../../src/event/service.js";
import { readWatchRequest, type CursorPosition } from "../../src/event/watch-request.js";
import { until } from "../helpers/nodes/until.js";

const mib = 1024 * 1024;
const hashOf = (number: number, index: number): string => `0x${`${number}-${index}`.padStart(64, "0")}`;

/** A chain of so many blocks with so many changes of one program in each, which nobody but its owner may read. */
function chainOf(head: number, count = 2, maxBytes = 16 * mib) {
  const state = { head, reads: [] as number[], atOnce: 0, mostAtOnce: 0, asked: [] as (string | undefined)[] };
  const body = (): TransactionBody =>
    create(TransactionBodySchema, {
      operation: {
        case: "storage",
        value: { operation: { case: "setField", value: { storageAddress: "stor-a", field: "n" } } },
      },
    });
  const log = createBlockLog({
    async readBlock(number): Promise<SourceBlock> {
      state.reads.push(Number(number));
      state.mostAtOnce = Math.max(state.mostAtOnce, ++state.atOnce);
      await new Promise((resolve) => setTimeout(resolve, 1));
      state.atOnce--;
      return {
        hash: `block ${number}`,
        header: create(BlockHeaderSchema, { number }),
        transactionHashes: Array.from({ length: count }, (_, i) => hashOf(Number(number), i)),
        block: { transactions: Array.from({ length: count }, () => ({ body: new Uint8Array() })) as never },
      };
    },
    decoder: { decode: body, addressOf: () => "stor-a" },
    access: {
      readableOf(addresses, identity) {
        state.asked.push(identity);
        return Promise.resolve(new Set(identity === "owner" ? addresses : []));
      },
      ownersOf: (addresses) => Promise.resolve(new Map(addresses.map((address) => [address, "owner"]))),
    },
    head: () => ({ hash: `block ${state.head}`, number: BigInt(state.head) }),
    maxBytes,
  });
  return { state, log };
}

const all = readWatchRequest(create(WatchRequestSchema));

/** Reads from a place to the end of a block, as somebody. */
async function readTo(
  { log }: ReturnType<typeof chainOf>,
  [from, to]: readonly [number, number],
  identity?: string,
  watching = all,
): Promise<string[]> {
  const cursors: string[] = [];
  let at: CursorPosition = { block: BigInt(from - 1), position: positionOfBlock };
  while (at.block < to || at.position !== positionOfBlock) {
    const { position: next, message } = await log.next(at, watching, identity);
    cursors.push(...(message === undefined ? [] : [message.cursor!]));
    at = next;
  }
  return cursors;
}

test("the newest blocks are read once for all, and rules asked once for all who are the same to them", async (t) => {
  const chain = chainOf(300);
  const readers = [undefined, "owner", undefined, "owner", "other", undefined];
  const heard = await Promise.all(readers.map((identity) => readTo(chain, [299, 300], identity)));
  t.deepEqual(heard[1], ["299.0", "299.1", "299.2", "299.3", "299", "300.0", "300.1", "300.2", "300.3", "300"]);
  t.deepEqual(heard[0], ["299.0", "299.2", "299", "300.0", "300.2", "300"]);
  t.deepEqual(heard[4], heard[0]);
  t.deepEqual(chain.state.reads, [299, 300]);
  t.deepEqual(await readTo(chain, [300, 300], "owner"), heard[1]!.slice(5));
  t.deepEqual(chain.state.reads, [299, 300]);
  const asked = chain.state.asked.length;
  t.true(asked <= 12, `${asked} times`);
  chain.state.head = 301;
  await readTo(chain, [300, 300], "owner");
  t.is(chain.state.asked.length, asked + 1, "a block may have changed a rule");
});

test("old blocks are read one after the other, whoever asks, and push out none of the new ones", async (t) => {
  const chain = chainOf(10_000);
  await readTo(chain, [9_990, 10_000]);
  chain.state.reads.length = 0;
  chain.state.mostAtOnce = 0;
  await Promise.all([1, 101, 201, 301].map((from) => readTo(chain, [from, from + 60])));
  t.is(chain.state.mostAtOnce, 1);
  chain.state.reads.length = 0;
  await readTo(chain, [9_990, 10_000]);
  t.deepEqual(chain.state.reads, []);
  chain.log.clear();
  await readTo(chain, [10_000, 10_000]);
  t.deepEqual(chain.state.reads, [10_000]);
});

test("the largest block is read once, also where there is least memory", async (t) => {
  for (const head of [1, 1_000]) {
    const chain = chainOf(head, 1_024, 8 * mib);
    t.is((await readTo(chain, [1, 1], "owner")).length, 2 * 1_024 + 1);
    t.deepEqual(chain.state.reads, [1]);
  }
});

test("what somebody does not ask for costs no question about rules", async (t) => {
  const chain = chainOf(5);
  for (const request of [{ addresses: [`stor-${"0".repeat(40)}`] }, { kinds: [EventKind.BLOCK] }]) {
    await readTo(chain, [1, 5], "owner", readWatchRequest(create(WatchRequestSchema, request)));
  }
  t.deepEqual(chain.state.asked, []);
});

test("a block that cannot be read fails whoever asks for it, and is tried again", async (t) => {
  let isBroken = true;
  const { log: whole } = chainOf(1);
  const log = createBlockLog({
    readBlock: () => Promise.reject(new Error("broken")),
    decoder: { decode: () => create(TransactionBodySchema), addressOf: () => undefined },
    access: { readableOf: () => Promise.resolve(new Set()), ownersOf: () => Promise.resolve(new Map()) },
    head: () => ({ hash: "1", number: 1n }),
    maxBytes: mib,
  });
  const start = { block: 0n, position: positionOfBlock };
  const next = (): Promise<unknown> => (isBroken ? log : whole).next(start, all, undefined);
  await t.throwsAsync(next, { message: "broken" });
  await t.throwsAsync(next, { message: "broken" });
  isBroken = false;
  await t.notThrowsAsync(next);
});

test("a reader who takes his time holds nothing, and goes on where he was", async (t) => {
  const chain = chainOf(1);
  const events = createEvents({
    head: () => ({ number: BigInt(chain.state.head), lowestBlock: 1n }),
    log: chain.log,
    checkRetained: () => undefined,
    progressEveryMs: 0,
  });
  const ended = new AbortController();
  const call = { caller: { address: "", identity: "owner" }, signal: ended.signal };
  const watch = (request: object) =>
    events.service.watch(create(WatchRequestSchema, request), call)[Symbol.asyncIterator]() as AsyncIterator<
      EventMessage,
      undefined
    >;
  const slow = watch({ fromBlock: 1n });
  t.is((await slow.next()).value?.cursor, "1.0");
  chain.state.head = 2_000;
  events.notify();
  const cursors: string[] = [];
  while (cursors.at(-1) !== "2000") {
    cursors.push((await slow.next()).value!.cursor!);
  }
  t.is(cursors.length, 2_000 * 5 - 1);
  t.deepEqual(cursors.slice(0, 5), ["1.1", "1.2", "1.3", "1", "2.0"]);

  // Who hears of nothing that he asks for hears how far it is; one who goes away ends.
  const idle = watch({ addresses: [`stor-${"0".repeat(40)}`], fromBlock: 1_999n });
  t.like((await idle.next()).value, { cursor: "1999", event: { case: "progress" } });
  t.like((await idle.next()).value, { cursor: "2000", event: { case: "progress" } });
  const next = idle.next();
  ended.abort();
  t.true((await next).done);
});

test("of rejections there are as many as somebody who is behind can be told, and no more", async (t) => {
  const chain = chainOf(1);
  const head = () => ({ number: BigInt(chain.state.head), lowestBlock: 1n });
  const events = createEvents({ head, log: chain.log, checkRetained: () => undefined });
  const signal = new AbortController().signal;
  const request = create(WatchRequestSchema, { kinds: [EventKind.TRANSACTION] });
  const watch = events.service
    .watch(request, { caller: { address: "", identity: undefined }, signal })
    [Symbol.asyncIterator]();
  t.like((await watch.next()).value, { event: { case: "progress" } });
  for (let i = 0; i < 3_000; i++) {
    events.rejected({ hash: String(i), reason: "so" });
  }
  const heard: string[] = [];
  while (heard.at(-1) !== "2999") {
    const { event } = (await watch.next()).value as { event: { value: { hash: string } } };
    heard.push(event.value.hash);
  }
  t.deepEqual(
    heard,
    Array.from({ length: 1_024 }, (_, i) => String(3_000 - 1_024 + i)),
  );
  const over = watch.next();
  events.close();
  await until(async () => (await over).done === true);
});
