/** Many streams that scan the history: they share the event loop with each other and with all other work. */
import { create } from "@bufbuild/protobuf";
import test, { type ExecutionContext } from "ava";
import { setTimeout as sleep } from "node:timers/promises";
import { BlockHeaderSchema, TransactionBodySchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { EventKind, WatchRequestSchema } from "../../gen/gatehouse/event/v1/event_pb.js";
import { createBlockLog } from "../../src/event/block-log.js";
import { createEvents } from "../../src/event/service.js";

/** Blocks of a chain, each with the change of one program that anyone may read. */
const blocks = 300;
/** Limit on the blocks that all streams search in one tick. */
const perTick = 4;
/** Time that a query takes, in milliseconds. Streams that wait for the same one all go on when it ends. */
const queryMs = 2;

/**
 * Starts the events of a chain. Each stream gets one message of each block, so that messages count blocks.
 *
 * @param isSlow true if each read of a block and of access rules takes time.
 */
function startEvents(t: ExecutionContext, isSlow: boolean) {
  const query = async (): Promise<void> => {
    if (isSlow) {
      await sleep(queryMs);
    }
  };
  const log = createBlockLog({
    async readBlock(number) {
      await query();
      const header = create(BlockHeaderSchema, { number });
      const block = { transactions: [{ body: new Uint8Array() }] as never };
      return { hash: `${number}`, header, transactionHashes: ["0x1"], block };
    },
    decoder: { decode: () => create(TransactionBodySchema), addressOf: () => "stor-a" },
    access: {
      async readableOf(addresses) {
        await query();
        return new Set(addresses);
      },
      ownersOf: () => Promise.resolve(new Map()),
    },
    head: () => ({ hash: "", number: BigInt(blocks) }),
    maxBytes: 16 * 1024 ** 2,
  });
  const head = { number: BigInt(blocks), lowestBlock: 1n };
  const events = createEvents({ head: () => head, checkRetained: () => undefined, log });
  const ended = new AbortController();
  t.teardown(() => ended.abort());
  const request = create(WatchRequestSchema, { fromBlock: 1n, kinds: [EventKind.TRANSACTION] });
  const scannedBy = new Map<string, number>();
  /** Opens a stream, and resolves once it has caught up. */
  const open = async (address: string): Promise<void> => {
    const call = { caller: { address, identity: address }, signal: ended.signal };
    for await (const { event } of events.service.watch(request, call as never)) {
      if (event?.case === "progress") {
        return;
      }
      scannedBy.set(address, (scannedBy.get(address) ?? 0) + 1);
    }
  };
  const scanned = (): number => [...scannedBy.values()].reduce((sum, count) => sum + count, 0);
  return { open, scanned, scannedBy: (address: string) => scannedBy.get(address)! };
}

/** Measures how much a count grows at most between two ticks, until the function returned is called. */
function mostPerTick(count: () => number): () => number {
  let [most, before, isDone] = [0, count(), false];
  const measure = (): void => {
    most = Math.max(most, count() - before);
    before = count();
    if (!isDone) {
      setImmediate(measure);
    }
  };
  setImmediate(measure);
  return () => {
    isDone = true;
    return most;
  };
}

test("streams from different addresses scan few blocks per tick, in rotation", async (t) => {
  const { open, scanned, scannedBy } = startEvents(t, false);
  const most = mostPerTick(scanned);
  const many = Array.from({ length: 50 }, () => open("many"));
  await open("one");
  const ofMany = scannedBy("many");
  // A single stream has one turn in each tick, and the others share the rest. A block takes it two: the block itself, and
  // its access rules.
  t.true(ofMany <= 2 * perTick * (blocks + 1), `the other address scanned ${ofMany} blocks meanwhile`);
  await Promise.all(many);
  const highest = most();
  t.true(highest <= 4 * perTick, `${highest} blocks in one tick`);
  t.is(scanned(), 51 * blocks);
});

test("streams that wait for the same block, or for the same access rules, go on in turns", async (t) => {
  const { open, scanned } = startEvents(t, true);
  const most = mostPerTick(scanned);
  await Promise.all(Array.from({ length: 200 }, (_, i) => open(i % 2 === 0 ? "even" : "odd")));
  const highest = most();
  t.true(highest <= 4 * perTick, `${highest} of 200 streams in one tick`);
  t.is(scanned(), 200 * blocks);
});
