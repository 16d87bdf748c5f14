import test from "ava";
import { setImmediate as nextTurn } from "node:timers/promises";
import { RpcError } from "../../../src/rpc/errors.js";
import type { CallByName } from "../../../src/rpc/json-rpc/json-rpc.js";
import { handleNodeCall } from "../../../src/rpc/node-call/node-call.js";

const newest = 30;

/** Returns the text of a block, as chain.getBlock does. */
const blockText = (number: number, hash = ""): string =>
  JSON.stringify({ hash, header: { number }, transactionHashes: [] });

/** Lists blocks of a chain whose rpcs are a function, and returns their numbers. */
const getBlocks = async (data: object, readBlock: (number: number) => Promise<string>): Promise<number[]> => {
  const call: CallByName = (name, params) =>
    name === "chain.getHead"
      ? Promise.resolve(JSON.stringify({ number: newest }))
      : readBlock((params as { number: number }).number);
  const text = await handleNodeCall("nodeCall", [{ message: "getBlocks", data }], call);
  return (JSON.parse(text) as { number: number }[]).map(({ number }) => number);
};

test("builds one list of blocks at a time, also after an error", async (t) => {
  let underWay = 0;
  let most = 0;
  const readBlock = async (number: number): Promise<string> => {
    most = Math.max(most, ++underWay);
    await nextTurn();
    underWay--;
    if (number === 7) {
      throw new RpcError("ANSWER_TOO_LARGE", "Too large.");
    }
    return blockText(number);
  };
  const lists = await Promise.allSettled([
    getBlocks({ start: 1, limit: 3 }, readBlock),
    getBlocks({ start: 7 }, readBlock),
    getBlocks({ start: 5 }, readBlock),
    getBlocks({ start: "latest", limit: 2 }, readBlock),
  ]);
  t.is(most, 1);
  t.like(lists, [
    { value: [1, 2, 3] },
    { status: "rejected", reason: { reason: "ANSWER_TOO_LARGE" } },
    { value: [5, 6] },
    { value: [29, 30] },
  ]);
});

test("yields to the event loop between blocks", async (t) => {
  let turns = 0;
  const turnsBefore: number[] = [];
  const done = new AbortController();
  const others = (async () => {
    while (!done.signal.aborted) {
      await nextTurn();
      turns++;
    }
  })();
  await getBlocks({ start: 1, limit: 10 }, (number) => {
    turnsBefore.push(turns);
    return Promise.resolve(blockText(number));
  });
  done.abort();
  await others;
  t.is(turnsBefore.length, 10);
  t.true(turnsBefore.every((before, i) => i === 0 || before > turnsBefore[i - 1]!));
});

test("reads the latest blocks backwards, up to the size of one response", async (t) => {
  const read: number[] = [];
  const readBlock = (number: number): Promise<string> => {
    read.push(number);
    return Promise.resolve(blockText(number, "x".repeat(1_500_000)));
  };
  t.deepEqual(await getBlocks({}, readBlock), [29, 30]);
  t.deepEqual(read, [30, 29, 28]);
});
