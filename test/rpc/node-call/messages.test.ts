/** Node-call requests as existing clients send them. */
import test from "ava";
import { AccessMode } from "../../../gen/gatehouse/storage/v1/storage_pb.js";
import { ChainService } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import { callerOf } from "../../helpers/process/caller.js";
import { connectGrpc } from "../../helpers/wire/grpc-client.js";
import { testKey } from "../../helpers/chain/keys.js";
import { ask, askJson, jsonPost } from "../../helpers/wire/plain-client.js";
import { startMember } from "../../helpers/nodes/start-node.js";
import { storeProgram, writeAs } from "../../helpers/chain/submit.js";
import type { Teardown } from "../../helpers/nodes/teardown.js";
import { createPublic, signTransaction } from "../../helpers/chain/transactions.js";
import { until } from "../../helpers/nodes/until.js";
import { likeLists } from "../../helpers/like-lists.js";

const [alice, bob] = [testKey(91), testKey(92)];
const items = Array.from({ length: 20_000 }, (_, i) => `"item ${i}"`);

interface Answer {
  readonly result: number;
  readonly response: unknown;
}

/** Starts a node with one program of alice in block 1, and returns functions that call it as clients do. */
async function start(t: Teardown) {
  const node = await startMember(t);
  const document = `{"theme":"dark","big":12345678901234567890,"few":[1.0,"two",null],"many":[${items.join()}]}`;
  const { address, hash } = await storeProgram(t, node, "settings", document, alice);
  const post = async (body: object, headers: Record<string, string> = {}): Promise<Answer> =>
    JSON.parse((await ask(node.port, "/", jsonPost(body, headers))).text) as Answer;
  const call = (message: string, data: object = {}, headers: Record<string, string> = {}): Promise<Answer> => {
    // Members that clients send besides the two that matter.
    const params = [{ type: "nodeCall", message, sender: null, receiver: null, timestamp: null, data, extra: "" }];
    return post({ method: "nodeCall", params }, headers);
  };
  return { node, address, hash, post, call };
}

test("responds with the bodies of plain HTTP, in the envelope", async (t) => {
  const { node, address, hash, post, call } = await start(t);
  const plain = (path: string) => askJson(node.port, path);
  const [head, read] = [await plain("/chain/head"), await plain("/chain/blocks/1")];
  const { previousHash, timestamp } = read["header"] as { previousHash: string; timestamp: number };
  const block = {
    ...{ ...read, number: 1, status: "confirmed", proposer: node.publicKey },
    content: { ordered_transactions: [hash], previousHash, timestamp },
  };
  const envelope = { result: 200, require_reply: false, extra: null };
  const anonymous = { identity: "ed25519:", signature: "" };
  const [program, path] = [{ storageAddress: address }, `/storage-program/${address}`];
  const ofOwner = await plain(`/storage-program/owner/${alice.publicKey}`);
  const found = await plain("/storage-program/search?q=sett");
  const item = { ...(await plain(`${path}/field/few/item/1`)), arrayLength: 3 };
  const same: readonly (readonly [string, object, unknown])[] = [
    ["getPeerlist", {}, await plain("/peerlist")],
    ["getPeerIdentity", {}, node.publicKey],
    ["getLastBlockNumber", {}, 1],
    ["getLastBlockHash", {}, head["hash"]],
    ["getBlocks", {}, [block]],
    ["getBlocks", { start: 1, limit: 5 }, [block]],
    ["getBlockByNumber", { blockNumber: 1 }, block],
    ["getBlockByHash", { hash: head["hash"] }, block],
    ["getMempool", {}, []],
    ["getStorageProgram", program, await plain(path)],
    ["getStorageProgramAll", program, await plain(path)],
    ["getStorageProgramFields", program, { ...(await plain(`${path}/fields`)), count: 4 }],
    ["getStorageProgramItem", { ...program, key: "few", index: 1 }, item],
    ["getStorageProgramsByOwner", { owner: alice.publicKey }, ofOwner["programs"]],
    ["searchStoragePrograms", { query: "sett" }, found["programs"]],
  ];
  for (const [message, data, response] of same) {
    const answer = await call(message, data, anonymous);
    t.deepEqual(Object.keys(answer), ["result", "response", "require_reply", "extra"], message);
    t.deepEqual(answer, { ...envelope, response } as never, message);
  }
  t.like((await call("getNetworkInfo")).response, { identity: node.publicKey, block: 1, peers: 1 });
  t.deepEqual(await post({ method: "ping", params: [] }), { ...envelope, response: "pong" } as never);
  t.like(await call("getStorageProgram", { storageAddress: {} }), { result: 400 });
  for (const params of [undefined, null, {}, [], [null], [7], [{ message: {} }]]) {
    t.is((await post({ method: "nodeCall", params })).result, 400);
  }
  const response = { error: 'This node does not serve the method "moon".', errorCode: "NOT_IMPLEMENTED" };
  t.deepEqual(await post({ method: "moon", params: [] }), { ...envelope, result: 501, response } as never);
});

test("accepts a field name as field or as key", async (t) => {
  const { address, call } = await start(t);
  for (const name of ["field", "key"]) {
    const theme = { storageAddress: address, [name]: "theme" };
    t.like(await call("getStorageProgramValue", theme), { result: 200, response: { field: "theme", value: "dark" } });
    t.like(await call("getStorageProgramFieldType", theme), { result: 200, response: { type: "string" } });
    t.like(await call("hasStorageProgramField", theme), { result: 200, response: { exists: true } });
    const none = { storageAddress: address, [name]: "none" };
    t.like(await call("hasStorageProgramField", none), { result: 200, response: { exists: false } });
    t.like(await call("getStorageProgramValue", none), { result: 404, response: { errorCode: "FIELD_NOT_FOUND" } });
  }
});

test("rejects a message without a required argument", async (t) => {
  const { address, call } = await start(t);
  const program = { storageAddress: address };
  const missing: readonly (readonly [message: string, data: object, argument: string])[] = [
    ["hasStorageProgramField", program, "field"],
    ["hasStorageProgramField", { ...program, field: null }, "field"],
    ["getStorageProgramValue", program, "field"],
    ["getStorageProgramFieldType", program, "field"],
    ["getStorageProgramItem", { ...program, field: "few" }, "index"],
    ["getStorageProgram", {}, "storageAddress"],
    ["getStorageProgramsByOwner", {}, "owner"],
    ["searchStoragePrograms", {}, "query"],
    ["getBlockByNumber", {}, "blockNumber"],
    ["getBlockByHash", {}, "hash"],
    ["getTxByHash", {}, "hash"],
    ["getAddressNonce", {}, "address"],
  ];
  for (const [message, data, argument] of missing) {
    const error = `${message} needs "${argument}" in its data.`;
    t.like(await call(message, data), { result: 400, response: { error, errorCode: "INVALID_REQUEST" } }, message);
  }
});

test("finds items from either end of short and long arrays, with the array's length", async (t) => {
  const { address, call } = await start(t);
  const item = (field: string, index: unknown) =>
    call("getStorageProgramItem", { storageAddress: address, field, index });
  t.like(await item("few", 0), { result: 200, response: { field: "few", index: 0, value: 1, arrayLength: 3 } });
  t.like(await item("few", -1), { result: 200, response: { index: 2, value: null, arrayLength: 3 } });
  t.like(await item("few", -3), { result: 200, response: { index: 0, value: 1 } });
  t.like(await item("many", -1), { response: { index: 19_999, value: "item 19999", arrayLength: 20_000 } });
  t.like(await item("many", -20_000), { response: { index: 0, value: "item 0" } });
  t.like(await item("many", 12_345), { response: { value: "item 12345", arrayLength: 20_000 } });
  for (const [field, index] of [
    ["few", -4],
    ["few", 3],
    ["many", -20_001],
    ["many", 20_000],
  ] as const) {
    t.like(
      await item(field, index),
      { result: 400, response: { errorCode: "INDEX_OUT_OF_BOUNDS" } },
      `${field} ${index}`,
    );
  }
  for (const index of ["-1", 0.5, -0.5, -(2 ** 40), {}, true]) {
    t.like(await item("few", index), { result: 400, response: { errorCode: "INVALID_REQUEST" } }, String(index));
  }
});

test("counts fields, returns lists as plain arrays, and reads their options", async (t) => {
  const { address, call } = await start(t);
  likeLists(t, await call("getStorageProgramFields", { storageAddress: address }), {
    response: { fields: ["theme", "big", "few", "many"], count: 4 },
  });
  const mine = await call("getStorageProgramsByOwner", { owner: alice.publicKey.slice(2) });
  likeLists(t, mine.response, [{ storageAddress: address, programName: "settings" }]);
  const search = async (query: string, options?: object) =>
    ((await call("searchStoragePrograms", { query, options })).response as { programName: string }[]).length;
  t.is(await search("sett"), 1);
  t.is(await search("sett", { exactMatch: true }), 0);
  t.is(await search("settings", { exactMatch: true, limit: 10, offset: 0 }), 1);
  t.is(await search("sett", { offset: 1 }), 0);
  t.is(await search("sett", { limit: 500 }), 1);
  t.like(await call("searchStoragePrograms", { query: "sett", options: { limit: 0 } }), { result: 400 });
});

test("accepts every request form and header set of existing clients", async (t) => {
  const { node, address, post } = await start(t);
  const data = { storageAddress: address, field: "theme", requesterAddress: alice.publicKey };
  const [message, type] = ["getStorageProgramValue", "nodeCall"];
  const bodies = [
    { message, data, muid: "storage-1795349970736" },
    { type, message, sender: null, receiver: null, timestamp: null, data, extra: "" },
    { message, data },
  ].map((param) => ({ method: "nodeCall", params: [param] }));
  const sets: Record<string, string>[] = [
    {},
    { identity: "ed25519:", signature: "" },
    { identity: "", signature: "" },
    { ...callerOf(alice).timelessHeaders() },
    { ...callerOf(bob).headers() },
  ];
  for (const headers of sets) {
    const all = { Accept: "application/json, text/plain, */*", ...headers };
    const what = JSON.stringify(headers);
    for (const body of bodies) {
      t.like(await post(body, all), { result: 200, response: { field: "theme", value: "dark" } }, what);
    }
    t.like(await post({ method: "ping", params: [] }, all), { result: 200, response: "pong" }, what);
    t.like(await post({ method: "gcr_routine", params: [{}] }, all), { result: 501 }, what);
    t.is((await ask(node.port, `/storage-program/${address}/field/theme`, { headers })).status, 200, what);
  }
});

test("rejects messages that are not served with an error that cannot be mistaken for data", async (t) => {
  const { call } = await start(t);
  for (const message of ["getBalance", "nodeCall", "__proto__", "constructor", "x".repeat(200)]) {
    const { result, response } = await call(message);
    t.is(result, 501, message);
    const error = `This node does not serve the message "${message.slice(0, 80)}".`;
    t.deepEqual(response, { error, errorCode: "NOT_IMPLEMENTED" }, message);
  }
  t.like(await call("getBlockByNumber", { blockNumber: 99 }), {
    ...{ result: 404, response: { error: "There is no such block yet.", errorCode: "NOT_FOUND" } },
  });
  t.like(await call("tlsnotary.getInfo"), { result: 404, response: { errorCode: "NOT_FOUND" } });
});

test("returns the network's forks, and finds blocks by hashes in any spelling", async (t) => {
  const { node, call } = await start(t);
  const osDenomination = { activationHeight: null, activated: false, currentHeight: 1 };
  t.like((await call("getNetworkInfo")).response, { forks: { osDenomination }, block: 1 });
  const { hash } = await askJson<{ hash: string }>(node.port, "/chain/blocks/1");
  t.like((await call("getBlockByHash", { hash: hash.slice(2).toUpperCase() })).response, { number: 1, hash });
  likeLists(t, (await call("getBlocks", { start: "latest", limit: 5 })).response, [{ number: 1, hash }]);
});

test("returns a transaction by hash, with or without 0x, to permitted readers, and a nonce to everyone", async (t) => {
  const { node, hash, call } = await start(t);
  const body = { sender: alice.publicKey, nonce: 1, storage: { createProgram: { programName: "settings" } } };
  t.like((await call("getTxByHash", { hash })).response, { hash, blockNumber: 1, body });
  t.like((await call("getTxByHash", { hash: hash.slice(2) })).response, { hash, body });
  const { text } = await ask(node.port, `/chain/transactions/${hash}`);
  t.deepEqual(Object.keys(JSON.parse(text) as object), ["hash", "status", "blockNumber", "reason"], "unless asked for");

  const client = connectGrpc(node.port);
  t.teardown(() => client.close());
  const secret = signTransaction(bob, 7, {
    case: "createProgram",
    value: { programName: "mine", data: { data: { case: "json", value: "{}" } }, access: { mode: AccessMode.OWNER } },
  });
  const { hash: hidden } = await client.call(ChainService.method.submitTransaction, { transaction: secret });
  await until(
    async () => ((await call("getTxByHash", { hash: hidden })).response as { status: string }).status === "confirmed",
  );
  const redacted = (await call("getTxByHash", { hash: hidden })).response;
  t.deepEqual(Object.keys(redacted as object), ["status", "hash", "blockNumber", "reason"]);
  const own = await call("getTxByHash", { hash: hidden }, callerOf(bob).headers());
  t.like(own.response, { hash: hidden, body: { sender: bob.publicKey } });

  t.like(await call("getAddressNonce", { address: bob.publicKey }), { result: 200, response: 7 });
  t.like(await call("getAddressNonce", { address: bob.publicKey.slice(2) }), { result: 200, response: 7 });
  t.like(await call("getAddressNonce", { address: testKey(93).publicKey }), { result: 200, response: 0 });
  t.like(await call("getAddressNonce", { address: "bob" }), { result: 400 });
});

test("lists transactions, latest first, with those that the caller may read", async (t) => {
  const { node, hash: first, address, call } = await start(t);
  const hashes = [first];
  for (const nonce of [2, 3]) {
    const value = { storageAddress: address, field: "n", value: String(nonce) };
    hashes.unshift(await writeAs(alice, node.port, nonce, { case: "setField", value }));
  }
  await writeAs(bob, node.port, 1, createPublic("other", "{}"));
  const hashesOf = async (message: string, data: object): Promise<unknown[]> =>
    ((await call(message, data)).response as { hash: string }[]).map(({ hash }) => hash);
  const ofAlice = { status: "confirmed", from: alice.publicKey };
  const history = await call("getTransactionHistory", { address: alice.publicKey, type: "all" });
  likeLists(t, history, {
    result: 200,
    response: [3, 2, 1].map((nonce, i) => ({ ...ofAlice, nonce, hash: hashes[i] })),
  });
  t.is((history.response as unknown[]).length, 3);
  const of = { address: alice.publicKey };
  t.deepEqual(await hashesOf("getTransactionHistory", { ...of, start: 1, limit: 1 }), [hashes[1]]);
  t.deepEqual(await hashesOf("getTransactionHistory", { ...of, type: "storageProgram" }), hashes);
  t.deepEqual(await hashesOf("getTransactionHistory", { ...of, type: "native" }), []);
  t.deepEqual(await hashesOf("getTransactionHistory", { ...of, start: 3 }), []);
  const latest = await hashesOf("getTransactions", { start: "latest", limit: 50 });
  t.is(latest.length, 4);
  t.deepEqual(latest.slice(1), hashes);
  t.deepEqual(await hashesOf("getTransactions", { limit: 1 }), latest.slice(0, 1));
  for (const [message, data, result] of [
    ["getTransactionHistory", {}, 400],
    ["getTransactionHistory", { address: "bob" }, 400],
    ["getTransactionHistory", { ...of, start: 1_001 }, 400],
    ["getTransactionHistory", { ...of, limit: "x" }, 400],
    ["getTransactions", { start: "first" }, 400],
    ["getTransactions", { start: 5 }, 501],
  ] as const) {
    t.is((await call(message, data)).result, result, JSON.stringify(data));
  }
});

test("describes transactions with the members that clients read of a signed transaction", async (t) => {
  const { node, hash, call } = await start(t);
  const from = alice.publicKey;
  const { body, ...read } = await askJson(node.port, `/chain/transactions/${hash}?withBody=true`);
  const { timestampMs: timestamp } = body as { timestampMs: number };
  const content = { type: "storageProgram", from, from_ed25519_address: from, nonce: 1, timestamp };
  const signed = { status: "confirmed", from, nonce: 1, content };
  t.deepEqual((await call("getTxByHash", { hash })).response, { ...read, ...signed, body });
  for (const message of ["getTransactions", "getTransactionHistory"]) {
    t.like((await call(message, { address: from })).response, [{ ...signed, hash }], message);
  }
});

test("reports the state of a transaction, also of an unknown one", async (t) => {
  const { hash, call } = await start(t);
  const stateOf = async (of: string): Promise<unknown> => (await call("getTransactionStatus", { hash: of })).response;
  t.deepEqual(await stateOf(hash), { state: "included", blockNumber: 1 });
  t.deepEqual(await stateOf(hash.slice(2)), { state: "included", blockNumber: 1 });
  t.deepEqual(await stateOf("0".repeat(64)), { state: "unknown" });
  t.like(await call("getTransactionStatus", { hash: "moon" }), { result: 400 });
  t.like(await call("getTransactionStatus"), { result: 400 });
});
test("the error of getAddressInfo has a reason for a balance, which no client takes for a number", async (t) => {
  const { call } = await start(t);
  const { result, response } = await call("getAddressInfo", { address: alice.publicKey });
  t.is(result, 501);
  const { balance, errorCode } = response as { balance: unknown; errorCode: string };
  t.is(errorCode, "NOT_IMPLEMENTED");
  // As existing clients convert it.
  t.truthy(balance);
  t.throws(() => BigInt(balance as string), { instanceOf: SyntaxError, message: /This network has no balances/ });
});

test("the error of a write has the reason in each place where clients look for it", async (t) => {
  const { post, call } = await start(t);
  const content = { type: "native", from: alice.publicKey, to: bob.publicKey, nonce: 2, amount: 1 };
  const transaction = { content, hash: "0".repeat(64), signature: { type: "ed25519", data: "0x" } };
  const execute = { type: "execute", message: "", sender: null, receiver: null, timestamp: null, data: transaction };
  const answers = [
    await post({ method: "execute", params: [{ ...execute, extra: "confirmTx" }] }),
    await post({ method: "execute", params: [{ ...execute, extra: "broadcastTx" }] }),
    await post({ method: "sendTransaction", params: [transaction] }),
    await call("broadcastNativeTransaction", { transaction }),
  ];
  const error =
    "This network does not accept this form of transactions. Submit the network's form with POST /chain/transactions.";
  const response = { error, errorCode: "NOT_IMPLEMENTED", message: error, data: { valid: false, message: error } };
  for (const answer of answers) {
    t.deepEqual(answer, { result: 501, response, require_reply: false, extra: null } as never);
  }
});
