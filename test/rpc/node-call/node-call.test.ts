import test from "ava";
import { setImmediate as nextTurn } from "node:timers/promises";
import { RpcError } from "../../../src/rpc/errors.js";
import type { CallByName } from "../../../src/rpc/json-rpc/json-rpc.js";
import { handleNodeCall } from "../../../src/rpc/node-call/node-call.js";
import { likeLists } from "../../helpers/like-lists.js";

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
    getBlocks({ start: 3, limit: 3 }, readBlock),
    getBlocks({ start: 7 }, readBlock),
    getBlocks({ start: 9 }, readBlock),
    getBlocks({ start: "latest", limit: 2 }, readBlock),
  ]);
  t.is(most, 1);
  likeLists(t, lists, [
    { value: [3, 2, 1] },
    { status: "rejected", reason: { reason: "ANSWER_TOO_LARGE" } },
    { value: [9, 8] },
    { value: [30, 29] },
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
  await getBlocks({ start: 10, limit: 10 }, (number) => {
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
  t.deepEqual(await getBlocks({}, readBlock), [30, 29]);
  t.deepEqual(read, [30, 29, 28]);
});

test("a client that pages blocks downwards receives each once, to the end or to the blocks that are not stored", async (t) => {
  const readAll = async (readBlock: (number: number) => Promise<string>): Promise<number[]> => {
    const all: number[] = [];
    let page = await getBlocks({ start: "latest", limit: 7 }, readBlock);
    while (page.length > 0) {
      all.push(...page);
      page = await getBlocks({ start: page.at(-1)! - 1, limit: 7 }, readBlock);
    }
    return all;
  };
  const numbers = Array.from({ length: newest }, (_, i) => newest - i);
  t.deepEqual(await readAll((number) => Promise.resolve(blockText(number))), numbers);
  t.deepEqual(await getBlocks({ start: 0 }, (number) => Promise.resolve(blockText(number))), []);
  t.deepEqual(await getBlocks({ start: 99, limit: 2 }, (number) => Promise.resolve(blockText(number))), [30, 29]);
  const pruned = (number: number): Promise<string> =>
    number < 20 ? Promise.reject(new RpcError("PRUNED", "Not stored.")) : Promise.resolve(blockText(number));
  t.deepEqual(await getBlocks({ limit: 50 }, pruned), numbers.slice(0, 11));
  await t.throwsAsync(getBlocks({ start: 19 }, pruned), { message: "Not stored." });
});

test("rejects a start or limit that is no number", async (t) => {
  const readBlock = (): Promise<string> => Promise.reject(new Error("must not be called"));
  for (const start of ["abc", "5", -1, 1.5, {}, true]) {
    await t.throwsAsync(getBlocks({ start }, readBlock), {
      message: /^start must be a whole number from 0, or latest/,
    });
  }
  for (const limit of ["abc", "5", 0, -1, 1.5, {}]) {
    await t.throwsAsync(getBlocks({ limit }, readBlock), { message: /^limit must be a whole number from 1/ });
  }
});

/** Returns the response to a message of a chain whose rpcs return, or throw, this. */
const answerTo = async (message: string, data: object, response: object): Promise<unknown> => {
  const call: CallByName = () =>
    response instanceof Error ? Promise.reject(response) : Promise.resolve(JSON.stringify(response));
  return JSON.parse(await handleNodeCall("nodeCall", [{ message, data }], call)) as unknown;
};

test("reports the state of each status, and unknown only for a transaction that the node does not know", async (t) => {
  const stateOf = (response: object): Promise<unknown> => answerTo("getTransactionStatus", { hash: "0x1" }, response);
  t.deepEqual(await stateOf({ status: "pending", blockNumber: null, reason: null }), { state: "pending" });
  t.deepEqual(await stateOf({ status: "included", blockNumber: 7, reason: null }), {
    ...{ state: "included", blockNumber: 7 },
  });
  t.deepEqual(await stateOf({ status: "rejected", blockNumber: null, reason: "The nonce 4 is used." }), {
    ...{ state: "failed", reason: "The nonce 4 is used." },
  });
  t.deepEqual(await stateOf(new RpcError("NOT_FOUND", "Not known.")), { state: "unknown" });
  await t.throwsAsync(stateOf(new RpcError("DATABASE_UNAVAILABLE", "No connection.")), { message: "No connection." });
});

test("describes transactions in and before blocks alike", async (t) => {
  const sender = `0x${"ab".repeat(32)}`;
  const signed = { from: sender, from_ed25519_address: sender, nonce: 3, timestamp: 5 };
  const pending = { hash: "0x1", sender, nonce: 3, timestamp: 5 };
  t.deepEqual(await answerTo("getMempool", {}, { transactions: [pending] }), [
    { ...pending, status: "pending", from: sender, content: signed },
  ]);
  const body = { sender, nonce: 3, timestampMs: 5, zk: {} };
  const content = { type: "zk", ...signed };
  for (const [status, described] of [
    ["pending", "pending"],
    ["included", "confirmed"],
  ] as const) {
    t.deepEqual(await answerTo("getTxByHash", { hash: "0x1" }, { hash: "0x1", status, body }), {
      ...{ status: described, from: sender, nonce: 3, content, hash: "0x1", body },
    });
  }
  t.deepEqual(await answerTo("getTxByHash", { hash: "0x1" }, { hash: "0x1", status: "rejected", reason: "Late." }), {
    ...{ status: "failed", hash: "0x1", reason: "Late." },
  });
});

test("lists as many programs and pending transactions as the rpcs do, unless a client wants fewer", async (t) => {
  const limitOf = async (message: string, data: object): Promise<unknown> => {
    let limit: unknown;
    const call: CallByName = (_, params) => {
      ({ limit } = params as { limit: unknown });
      return Promise.resolve('{"programs":[],"transactions":[]}');
    };
    await handleNodeCall("nodeCall", [{ message, data }], call);
    return limit;
  };
  t.is(await limitOf("getStorageProgramsByOwner", { owner: "0x1" }), 200);
  t.is(await limitOf("getStorageProgramsByOwner", { owner: "0x1", limit: 7 }), 7);
  t.is(await limitOf("searchStoragePrograms", { query: "x" }), 200);
  t.is(await limitOf("searchStoragePrograms", { query: "x", options: { limit: 500 } }), 200);
  t.is(await limitOf("getMempool", {}), 200);
  await t.throwsAsync(limitOf("searchStoragePrograms", { query: "x", options: { limit: "many" } }), {
    message: /^limit must be a whole number from 1/,
  });
});
