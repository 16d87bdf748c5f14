/** Many streams that scan the history: they share the event loop with each other and with all other work. */
import { create } from "@bufbuild/protobuf";
import test from "ava";
import { WatchRequestSchema } from "../../gen/gatehouse/event/v1/event_pb.js";
import { positionOfBlock } from "../../src/event/block-events.js";
import { createEvents } from "../../src/event/service.js";

test("streams from different addresses scan few blocks per tick, in rotation", async (t) => {
  const head = { number: 300n, lowestBlock: 1n };
  let scanned = 0;
  const scannedBy = new Map<string, number>();
  const events = createEvents({
    head: () => head,
    checkRetained: () => undefined,
    log: {
      // All blocks are cached, and none has a matching event.
      next: ({ block }, _, identity) => {
        scanned++;
        scannedBy.set(identity!, (scannedBy.get(identity!) ?? 0) + 1);
        return Promise.resolve({ position: { block: block + 1n, position: positionOfBlock }, message: undefined });
      },
      clear: () => undefined,
    },
  });
  const ended = new AbortController();
  t.teardown(() => ended.abort());
  const request = create(WatchRequestSchema, { fromBlock: 1n, transactions: ["0x1"] });
  /** Opens a stream, and resolves once it has caught up. */
  const open = async (address: string): Promise<void> => {
    const call = { caller: { address, identity: address }, signal: ended.signal };
    for await (const { blockNumber } of events.service.watch(request, call as never)) {
      if (blockNumber === head.number) {
        return;
      }
    }
  };
  let most = 0;
  let before = 0;
  let isDone = false;
  t.teardown(() => (isDone = true));
  const count = (): void => {
    most = Math.max(most, scanned - before);
    before = scanned;
    if (!isDone) {
      setImmediate(count);
    }
  };
  setImmediate(count);
  const many = Array.from({ length: 50 }, () => open("many"));
  await open("one");
  const ofMany = scannedBy.get("many")!;
  // A single stream has one turn in each tick, and the others share the rest.
  t.true(ofMany <= 16 * 301, `the other address scanned ${ofMany} blocks meanwhile`);
  await Promise.all(many);
  t.true(most <= 64, `${most} blocks in one tick`);
  t.is(scanned, 51 * 300);
});
