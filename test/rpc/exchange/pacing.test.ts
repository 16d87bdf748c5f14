/** Pacing: how many messages and responses are created in one tick of the event loop. */
import test from "ava";
import { maxTickBytes, nextTick, paceMessage, paceResponse } from "../../../src/rpc/exchange/pacing.js";

/** Creates messages of this size at once. Returns the number of messages that each tick created. */
async function countByTick(count: number, bytes: number): Promise<number[]> {
  const created: number[] = [];
  let isNewTick = true;
  const create = (): Buffer => {
    if (isNewTick) {
      isNewTick = false;
      created.push(0);
      setImmediate(() => (isNewTick = true));
    }
    created[created.length - 1]!++;
    return Buffer.alloc(bytes);
  };
  await Promise.all(Array.from({ length: count }, () => paceMessage(create)));
  return created;
}

test.serial("small messages share a tick, and large ones do not", async (t) => {
  // Ends the tick that the test runner shares.
  await nextTick();
  await nextTick();
  t.deepEqual(await countByTick(160, 100), [64, 64, 32]);
  await nextTick();
  t.deepEqual(await countByTick(3, maxTickBytes), [1, 1, 1]);
});

test.serial("messages continue in order, also behind large responses", async (t) => {
  const order: number[] = [];
  const response = (index: number) =>
    paceResponse(() => (order.push(index), { body: Buffer.alloc(maxTickBytes + 1), isShared: false }));
  await Promise.all([
    response(0),
    paceMessage(() => (order.push(1), Buffer.alloc(1))),
    response(2),
    paceMessage(() => (order.push(3), Buffer.alloc(1))),
  ]);
  t.deepEqual(order, [0, 1, 2, 3]);
});
