/** Batches of JSON-RPC requests, and a document that cannot be built. */
import test from "ava";
import { maxResponseBytes, maxListBytes } from "../../../src/base/limits/response-limits.js";
import { RpcError } from "../../../src/rpc/errors.js";
import type { Gate } from "../../../src/rpc/gate.js";
import { createUnrestrictedGate } from "../../../src/edge/unrestricted-gate.js";
import { createJsonRpcEntry } from "../../../src/rpc/json-rpc/json-rpc.js";
import { receiveBatch } from "../../../src/rpc/json-rpc/batch.js";
import type { JsonRpcRequest } from "../../../src/rpc/json-rpc/request.js";
import type { Call } from "../../../src/rpc/service.js";
import { arriveOn } from "../../helpers/nodes/edge-server.js";

const open = createUnrestrictedGate();

function admittedRequest(body = ""): JsonRpcRequest {
  const arrival = arriveOn(open.connect("", () => undefined)!);
  return {
    body: Buffer.from(body),
    arrival,
    permit: open.admit(arrival, "json-rpc", undefined),
    call: { caller: { address: "", identity: undefined } } as Call,
  };
}

test("records the error of a failed request in a batch for that request only", async (t) => {
  const outcomes: (string | undefined)[] = [];
  const gate: Gate = {
    ...open,
    admit: (...batch) => ({
      ...open.admit(...batch),
      recordOutcome: (failure) => outcomes.push(failure?.reason),
    }),
  };
  const batch = admittedRequest();
  await receiveBatch(["bad", "good", "bad", "good"], batch, {
    gate,
    receive: (request, admitted) => {
      if (request === "bad") {
        admitted.failure = new RpcError("NOT_FOUND", "Bad.");
      }
      return Promise.resolve("{}");
    },
  });
  // The code that admitted the batch records the outcome of its first request.
  t.is(batch.failure?.reason, "NOT_FOUND");
  t.deepEqual(outcomes, [undefined, "NOT_FOUND", undefined]);
});

for (const [what, lengths, batch] of [
  ["includes responses up to the limit", [maxListBytes - 100, 100], [0, 1]],
  ["includes the first response of any size, and processes no request after it", [maxListBytes + 2, 2], [0]],
  ["rejects a response that does not fit, and processes no request after it", [maxListBytes, 1_000, 2], [0]],
  ["includes a short response at the limit, because it may confirm a change", [maxListBytes, 500, 2], [0, 1]],
] as const) {
  test(`a batch: ${what}`, async (t) => {
    const looked: number[] = [];
    const text = await receiveBatch(
      lengths.map((length, id) => ({ id, length })),
      admittedRequest(),
      {
        gate: open,
        receive: (request) => {
          const { id, length } = request as { id: number; length: number };
          looked.push(id);
          // The limit is in bytes, and each of these characters has two.
          return Promise.resolve(JSON.stringify("é".repeat(length / 2 - 1)));
        },
      },
    );
    const answers = JSON.parse(text!) as (string | { id: number; error: { data: { reason: string } } })[];
    t.deepEqual(
      answers.flatMap((answer, i) => (typeof answer === "string" ? [i] : [])),
      [...batch],
    );
    const rejected = answers.flatMap((answer) => (typeof answer === "string" ? [] : [answer]));
    t.deepEqual(
      rejected.map(({ id, error }) => [id, error.data.reason]),
      lengths.flatMap((_, id) => ((batch as readonly number[]).includes(id) ? [] : [[id, "ANSWER_TOO_LARGE"]])),
    );
    t.true(looked.length <= batch.length + 1);
    t.false(looked.includes(2));
    t.true(Buffer.byteLength(text!) <= maxResponseBytes);
  });
}

test("reports a failed discovery to the caller, and its reason to the log", async (t) => {
  const reported: unknown[] = [];
  const cause = new Error("ENOENT: no such file, open '/opt/secret/contract.binpb'");
  const answer = createJsonRpcEntry({
    gate: open,
    onInternalError: (error) => reported.push(error),
    methods: [],
    nodeCall: () => Promise.resolve("null"),
    discover: () => {
      throw cause;
    },
  });
  const text = await answer(admittedRequest('{"jsonrpc":"2.0","id":7,"method":"rpc.discover"}'));
  const data = { reason: "INTERNAL_ERROR", requestId: "a" };
  t.deepEqual(JSON.parse(text!), { jsonrpc: "2.0", id: 7, error: { code: -32603, message: "Internal error", data } });
  t.deepEqual(reported, [cause]);
});
