/** Event log: reads of blocks, caches, checks of access rules, and slow subscribers. */
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

/**
 * Simulates a chain with changes of one program, which only its owner may read.
 *
 * @param count number of changes in each block.
 */
function chainOf(head: number, count = 2, maxBytes = 16 * mib) {
  const state = {
    head,
    /** Numbers of the blocks that were read. */
    reads: [] as number[],
    /** Number of reads that fail. */
    failures: 0,
    concurrentReads: 0,
    maxConcurrentReads: 0,
    /** Identities whose access was checked. */
    accessChecks: [] as (string | undefined)[],
  };
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
      state.maxConcurrentReads = Math.max(state.maxConcurrentReads, ++state.concurrentReads);
      await new Promise((resolve) => setTimeout(resolve, 1));
      state.concurrentReads--;
      if (state.failures-- > 0) {
        throw new Error("broken");
      }
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
        state.accessChecks.push(identity);
        return Promise.resolve(new Set(identity === "owner" ? addresses : []));
      },
      ownersOf: (addresses) => Promise.resolve(new Map(addresses.map((address) => [address, "owner"]))),
    },
    head: () => ({ hash: `block ${state.head}`, number: BigInt(state.head) }),
    maxBytes,
  });
  return { state, log };
}

const unfiltered = readWatchRequest(create(WatchRequestSchema));

/** Reads a range of blocks as a caller. Returns the cursors of the events. */
async function readBlocks(
  { log }: ReturnType<typeof chainOf>,
  [from, to]: readonly [number, number],
  identity?: string,
  request = unfiltered,
): Promise<string[]> {
  const cursors: string[] = [];
  let after: CursorPosition = { block: BigInt(from - 1), position: positionOfBlock };
  while (after.block < to || after.position !== positionOfBlock) {
    const { position, message } = await log.next(after, request, { identity, turn: () => Promise.resolve() });
    cursors.push(...(message === undefined ? [] : [message.cursor!]));
    after = position;
  }
  return cursors;
}

test("reads recent blocks once for all subscribers, and checks access once for each identity and block", async (t) => {
  const chain = chainOf(300);
  const readers = [undefined, "owner", undefined, "owner", "other", undefined];
  const cursors = await Promise.all(readers.map((identity) => readBlocks(chain, [299, 300], identity)));
  t.deepEqual(cursors[1], ["299.0", "299.1", "299.2", "299.3", "299", "300.0", "300.1", "300.2", "300.3", "300"]);
  t.deepEqual(cursors[0], ["299.0", "299.2", "299", "300.0", "300.2", "300"]);
  t.deepEqual(cursors[4], cursors[0]);
  t.deepEqual(chain.state.reads, [299, 300]);
  t.deepEqual(await readBlocks(chain, [300, 300], "owner"), cursors[1]!.slice(5));
  t.deepEqual(chain.state.reads, [299, 300]);
  const checks = chain.state.accessChecks.length;
  t.is(checks, new Set(chain.state.accessChecks).size * 2, "one for each identity and block");
  chain.state.head = 301;
  await readBlocks(chain, [300, 300], "owner");
  t.is(chain.state.accessChecks.length, checks + 1, "the new block may have changed an access rule");
});

test("reads older blocks one at a time, and does not evict recent ones for them", async (t) => {
  const chain = chainOf(10_000);
  await readBlocks(chain, [9_990, 10_000]);
  chain.state.reads.length = 0;
  chain.state.maxConcurrentReads = 0;
  await Promise.all([1, 101, 201, 301].map((from) => readBlocks(chain, [from, from + 60])));
  t.is(chain.state.maxConcurrentReads, 1);
  chain.state.reads.length = 0;
  await readBlocks(chain, [9_990, 10_000]);
  t.deepEqual(chain.state.reads, []);
  chain.log.clear();
  await readBlocks(chain, [10_000, 10_000]);
  t.deepEqual(chain.state.reads, [10_000]);
});

test("caches the largest block, also with the smallest memory limit", async (t) => {
  for (const head of [1, 1_000]) {
    const chain = chainOf(head, 1_024, 8 * mib);
    t.is((await readBlocks(chain, [1, 1], "owner")).length, 2 * 1_024 + 1);
    t.deepEqual(chain.state.reads, [1]);
  }
});

test("does not check access for events that a filter excludes", async (t) => {
  const chain = chainOf(5);
  for (const request of [{ addresses: [`stor-${"0".repeat(40)}`] }, { kinds: [EventKind.BLOCK] }]) {
    await readBlocks(chain, [1, 5], "owner", readWatchRequest(create(WatchRequestSchema, request)));
  }
  t.deepEqual(chain.state.accessChecks, []);
});

test("a failed read of a block rejects, and the next request reads the block again", async (t) => {
  const chain = chainOf(1);
  chain.state.failures = 2;
  for (let i = 0; i < 2; i++) {
    await t.throwsAsync(readBlocks(chain, [1, 1]), { message: "broken" });
  }
  await t.notThrowsAsync(readBlocks(chain, [1, 1]));
});

test("a slow subscriber receives every event, and an idle one progress messages", async (t) => {
  const chain = chainOf(1);
  const events = createEvents({
    head: () => ({ number: BigInt(chain.state.head), lowestBlock: 1n }),
    log: chain.log,
    checkRetained: () => undefined,
    progressEveryMs: 0,
  });
  const controller = new AbortController();
  const call = { caller: { address: "", identity: "owner" }, signal: controller.signal };
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

  // A subscriber without matching events gets progress messages, until its signal is aborted.
  const idle = watch({ addresses: [`stor-${"0".repeat(40)}`], fromBlock: 1_999n });
  t.like((await idle.next()).value, { cursor: "1999", event: { case: "progress" } });
  t.like((await idle.next()).value, { cursor: "2000", event: { case: "progress" } });
  const next = idle.next();
  controller.abort();
  t.true((await next).done);
});

test("a subscriber that falls behind receives the latest 1,024 rejections", async (t) => {
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
  const hashes: string[] = [];
  while (hashes.at(-1) !== "2999") {
    const { event } = (await watch.next()).value as { event: { value: { hash: string } } };
    hashes.push(event.value.hash);
  }
  t.deepEqual(
    hashes,
    Array.from({ length: 1_024 }, (_, i) => String(3_000 - 1_024 + i)),
  );
  const next = watch.next();
  events.close();
  await until(async () => (await next).done === true);
});
