/** The JSON-RPC entry point, with a client library and with invalid requests. */
import test from "ava";
import fc from "fast-check";
import { JSONRPCClient, type JSONRPCResponse } from "json-rpc-2.0";
import { startMember, startTestNode, type TestNode } from "../../helpers/nodes/start-node.js";
import { testKey } from "../../helpers/chain/keys.js";
import { heapBytes } from "../../helpers/process/heap.js";
import { ask, jsonPost } from "../../helpers/wire/plain-client.js";
import { storeProgram } from "../../helpers/chain/submit.js";
import type { Teardown } from "../../helpers/nodes/teardown.js";

const alice = testKey(90);

async function startWithProgram(t: Teardown) {
  const node = await startMember(t);
  const stored = await storeProgram(t, node, "notes", '{"big":12345678901234567890,"list":[1.0,"two"]}', alice);
  return { node, ...stored };
}

interface Answer {
  readonly id: unknown;
  readonly result?: unknown;
  readonly error?: {
    readonly code: number;
    readonly message: string;
    readonly data?: { readonly reason: string; readonly retryAfter: number };
  };
}

async function post<T = Answer>(node: TestNode, body: unknown): Promise<T> {
  const { status, text } = await ask(node.port, "/", jsonPost(body));
  if (status !== 200) {
    throw new Error(`HTTP ${status}: ${text}`);
  }
  return JSON.parse(text) as T;
}

test("accepts named and positional parameters from a JSON-RPC library, alone and in batches", async (t) => {
  const { node, address } = await startWithProgram(t);
  const client = new JSONRPCClient(async (request: unknown) => {
    client.receive(await post<JSONRPCResponse>(node, request));
  });
  t.is(await client.request("info.getVersion", {}), "0.2.0");
  t.like(await client.request("storage.getField", { storageAddress: address, field: "list" }), { type: "array" });
  t.like(await client.request("storage.getFieldItem", [address, "list", 1]), { value: "two" });
  const answers = await client.requestAdvanced(
    [
      { jsonrpc: "2.0", id: 1, method: "chain.getHead" },
      { jsonrpc: "2.0", id: 2, method: "storage.hasField", params: [address, "none"] },
      { jsonrpc: "2.0", id: 3, method: "storage.getProgram", params: ["nonsense"] },
    ],
    undefined,
  );
  t.like(answers[0], { id: 1, result: { number: 1 } });
  t.like(answers[1], { id: 2, result: { exists: false } });
  t.like(answers[2], { id: 3, error: { code: -32602, data: { reason: "INVALID_REQUEST" } } });
  const missing = await t.throwsAsync(
    client.request("storage.getProgram", [`stor-${"0".repeat(40)}`]) as Promise<unknown>,
  );
  t.like(missing, { code: -32000, data: { reason: "NOT_FOUND" } });
});

test("returns documents unchanged, without parsing their numbers", async (t) => {
  const { node, address } = await startWithProgram(t);
  const request = { jsonrpc: "2.0", id: "a", method: "storage.getProgramData", params: [address] };
  const { text } = await ask(node.port, "/", jsonPost(request));
  t.true(text.includes('"data":{"big":12345678901234567890,"list":[1.0,"two"]}'), text);
});

test("distinguishes invalid parameters, unknown methods and names of Object.prototype", async (t) => {
  const node = await startMember(t);
  const cases: readonly (readonly [string, unknown, number])[] = [
    ["storage.getProgram", [1], -32602],
    ["storage.getProgram", ["a", "b"], -32602],
    ["storage.searchPrograms", { q: {} }, -32602],
    ["storage.searchPrograms", { q: "a", limit: "x" }, -32602],
    ["info.moon", {}, -32601],
    ["constructor", {}, -32601],
    ["__proto__", {}, -32601],
    ["toString", [], -32601],
    ["gatehouse.peer.v1.PeerService", {}, -32601],
    ["control.addPeer", {}, -32601],
    ["peer.handshake", {}, -32601],
    ["health.watchHealth", {}, -32601],
  ];
  for (const [method, params, code] of cases) {
    const { error } = await post(node, { jsonrpc: "2.0", id: 1, method, params });
    t.is(error?.code, code, `${method} ${JSON.stringify(params)}`);
  }
  for (const [method, params, sentence] of [
    ["storage.getProgram", {}, "storageAddress is required."],
    ["storage.getField", { storageAddress: "x" }, "field is required."],
    ["storage.getField", { storage_address: "x" }, "field is required."],
    ["storage.getField", ["x"], "field is required."],
    ["storage.getProgram", { storageAddress: 1 }, /^storageAddress must be /],
    ["storage.getProgram", { storage_address: 1 }, /^storage_address must be /],
    ["zk.getNullifier", { nullifierHash: [] }, /^nullifierHash must be /],
    ["chain.submitTransaction", {}, "The request must hold a transaction."],
    ["chain.submitTransaction", { transaction: { body: 7 } }, 'transaction.body must be base64, not "7".'],
  ] as const) {
    const { error } = await post(node, { jsonrpc: "2.0", id: 1, method, params });
    t.is(error?.code, -32602);
    if (typeof sentence === "string") {
      t.is(error?.message, sentence);
    } else {
      t.regex(error?.message ?? "", sentence);
    }
  }
  const harmless = '{"jsonrpc":"2.0","id":1,"method":"info.getVersion","params":{"__proto__":{"a":1},"constructor":1}}';
  t.like(await post(node, harmless), { result: "0.2.0" });
});

test("rejects invalid requests with their id if it is valid, alone and in batches", async (t) => {
  const node = await startMember(t);
  const version = { jsonrpc: "2.0", method: "info.getVersion" };
  const invalid = (id: unknown) => ({ jsonrpc: "2.0", id, error: { code: -32600, message: "Invalid Request" } });
  const cases: readonly (readonly [unknown, unknown])[] = [
    ...[1, null, {}, [], true].flatMap((method) => [
      [{ ...version, method, id: 7 }, invalid(7)] as const,
      [{ ...version, method, id: "a" }, invalid("a")] as const,
      [{ ...version, method }, invalid(null)] as const,
    ]),
    [{ jsonrpc: "2.0", id: 7 }, invalid(7)],
    ...[{}, [], true, { toString: "x" }, [1]].map((id) => [{ ...version, id }, invalid(null)] as const),
    [{ ...version, method: 1, id: {} }, invalid(null)],
    [{ ...version, jsonrpc: "1.0", id: 7 }, invalid(7)],
    [{ ...version, jsonrpc: 2, id: {} }, invalid(null)],
    ...[1, "a", null].map((id) => {
      const error = { code: -32601, message: "Method not found" };
      return [
        { ...version, method: "moon", id },
        { jsonrpc: "2.0", id, error },
      ] as const;
    }),
    ...["a", "", 7, -1.5, 0, null].map(
      (id) =>
        [
          { ...version, id },
          { jsonrpc: "2.0", id, result: "0.2.0" },
        ] as const,
    ),
  ];
  for (const [request, answer] of cases) {
    t.deepEqual(await post(node, request), answer as never, JSON.stringify(request));
  }
  for (const text of ["7", '"info.getVersion"', "null", "true"]) {
    t.deepEqual(await post(node, text), invalid(null) as never, text);
  }
  t.like(await post(node, "[]"), { error: { code: -32600 } });
  const parseError = {
    code: -32700,
    message: "Parse error: The request body is not JSON at line 1, column 2: the text ends.",
  };
  t.deepEqual(await post(node, "{"), { jsonrpc: "2.0", id: null, error: parseError } as never);
  const notification = '{"jsonrpc":"2.0","method":"x"}';
  t.like(await ask(node.port, "/", { method: "POST", body: notification }), { status: 204, text: "" });
  const inBatch = [...cases, [7, invalid(null)], [null, invalid(null)], [[], invalid(null)]] as const;
  t.deepEqual(
    await post(
      node,
      inBatch.map(([request]) => request),
    ),
    inBatch.map(([, answer]) => answer) as never,
  );
});

test("responds with a null id if a rejected request of a full batch has an invalid one", async (t) => {
  const node = await startTestNode(t, { "rate-limit": "1", "rate-limit-exempt": "192.0.2.1" });
  const one = { jsonrpc: "2.0", method: "info.getVersion" };
  const answers = await post<Answer[]>(node, [
    one,
    ...[{}, true, "a", 7, null].map((id) => ({ ...one, id })),
    { ...one, method: 1 },
    one,
  ]);
  t.deepEqual(
    answers.map(({ id }) => id),
    [null, null, "a", 7, null, null],
  );
  t.true(answers.every(({ error }) => error?.data?.reason === "RATE_LIMITED"));
});

test("limits batches, rate limits each of their requests, and runs notifications without a response", async (t) => {
  const node = await startTestNode(t, { "rate-limit": "10", "rate-limit-exempt": "192.0.2.1" });
  const one = { jsonrpc: "2.0", method: "info.getVersion" };
  t.is((await ask(node.port, "/", { method: "POST", body: JSON.stringify([one, one]) })).status, 204);
  const answers = await post<Answer[]>(
    node,
    Array.from({ length: 20 }, (_, id) => ({ ...one, id })),
  );
  t.deepEqual(
    answers.map(({ id }) => id),
    Array.from({ length: 20 }, (_, id) => id),
  );
  const rejected = answers.filter(({ error }) => error?.data?.reason === "RATE_LIMITED");
  t.true(rejected.length > 5 && rejected.length < 20);
  t.true(rejected.every(({ error }) => error!.data!.retryAfter >= 1));
  t.is(answers.filter(({ result }) => result === "0.2.0").length, 20 - rejected.length);
});

test("describes every method by rpc.discover, with parameters, results and comments", async (t) => {
  const node = await startMember(t);
  const { result } = await post<{
    result: { openrpc: string; methods: { name: string; summary: string; params: { name: string }[] }[] };
  }>(node, { jsonrpc: "2.0", id: 1, method: "rpc.discover" });
  t.is(result.openrpc, "1.3.2");
  const search = result.methods.find(({ name }) => name === "storage.searchPrograms")!;
  t.deepEqual(
    search.params.map(({ name }) => name),
    ["q", "exact", "limit", "offset", "pageToken"],
  );
  for (const { name, summary } of result.methods) {
    t.true(summary.length > 5, name);
    const { error } = await post(node, { jsonrpc: "2.0", id: 1, method: name });
    t.not(error?.code, -32601, name);
  }
});

/** Duration in seconds; FUZZ_SECONDS sets a longer one. */
const fuzzMs = Number(process.env["FUZZ_SECONDS"] ?? 2) * 1000;

test("survives malformed JSON-RPC requests without errors or growing memory", async (t) => {
  t.timeout(fuzzMs + 120_000);
  const { node, address } = await startWithProgram(t);
  const value = fc
    .anything({ withNullPrototype: false, maxDepth: 3 })
    .filter((made) => typeof made !== "function" && made !== undefined);
  const id = fc.oneof(fc.integer(), fc.string(), fc.constant(null), value);
  const method = fc.oneof(
    fc.constantFrom(
      "info.getVersion",
      "storage.getProgram",
      "storage.searchPrograms",
      "rpc.discover",
      "nodeCall",
      "ping",
    ),
    fc.constantFrom("__proto__", "constructor", "chain.getBlock", "zk.getMerkleProof", "chain.submitTransaction"),
    fc.string(),
    value,
  );
  const params = fc.oneof(
    value,
    fc.array(value, { maxLength: 5 }),
    fc.record({ storageAddress: fc.oneof(fc.constant(address), value), field: value, q: value, limit: value }),
    fc.constant([{ message: "getBlocks", data: { start: 1, limit: 1e9 } }]),
    fc.tuple(fc.record({ message: fc.oneof(fc.constant("getStorageProgram"), value), data: value })),
  );
  const request = fc.record({ jsonrpc: fc.oneof(fc.constant("2.0"), value), id, method, params }, { requiredKeys: [] });
  const body = fc.oneof(
    { weight: 6, arbitrary: request.map((made) => JSON.stringify(made)) },
    { weight: 2, arbitrary: fc.array(request, { maxLength: 20 }).map((made) => JSON.stringify(made)) },
    { weight: 1, arbitrary: request.map((made) => JSON.stringify(made).slice(0, -1)) },
    { weight: 1, arbitrary: fc.string() },
  );
  let sent = 0;
  let before: number | undefined;
  const untilMs = Date.now() + fuzzMs;
  while (Date.now() < untilMs) {
    await Promise.all(
      fc.sample(body, 20).map(async (text) => {
        const { status, text: answer } = await ask(node.port, "/", { method: "POST", body: text });
        sent++;
        t.true(status === 200 || status === 204, `${status} for ${text}`);
        t.false(answer.includes("-32603") || answer.includes("INTERNAL_ERROR"), `${answer} for ${text}`);
        if (status === 200) {
          t.notThrows(() => JSON.parse(answer) as unknown);
        }
      }),
    );
    // Caches and compiled code are warm from here on.
    before ??= Date.now() > untilMs - fuzzMs / 2 ? heapBytes() : undefined;
  }
  const grownMb = (heapBytes() - before!) / 1e6;
  t.log(`${sent} requests, ${grownMb.toFixed(1)} MB more in use than in the middle`);
  t.true(grownMb < 20);
  t.like(node.processErrors.counters, { uncaughtTotal: 0n, unhandledRejectionTotal: 0n });
  t.is((await ask(node.port, "/health")).status, 200);
});

test.serial("a batch of 100 requests adds one listener to its response", async (t) => {
  const warnings: string[] = [];
  const onWarning = ({ name }: Error): void => void warnings.push(name);
  process.on("warning", onWarning);
  t.teardown(() => process.off("warning", onWarning));
  const batch = Array.from({ length: 100 }, (_, id) => ({ jsonrpc: "2.0", id, method: "info.getVersion" }));
  const answers = await post<unknown[]>(await startTestNode(t), batch);
  t.is(answers.length, 100);
  t.deepEqual(warnings, []);
});
