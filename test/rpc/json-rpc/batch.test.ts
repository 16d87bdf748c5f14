import test from "ava";
import { maxResponseBytes, maxListBytes } from "../../../src/base/limits/response-limits.js";
import { RpcError } from "../../../src/rpc/errors.js";
import type { Arrival, Gate } from "../../../src/rpc/gate.js";
import { createUnrestrictedGate } from "../../../src/edge/unrestricted-gate.js";
import { receiveBatch } from "../../../src/rpc/json-rpc/batch.js";
import type { JsonRpcRequest } from "../../../src/rpc/json-rpc/request.js";
import type { Call } from "../../../src/rpc/service.js";

const open = createUnrestrictedGate();

/** A batch as it came. */
function batchRequest(): JsonRpcRequest {
  const arrival: Arrival = {
    requestId: "1",
    connection: open.connect("", () => undefined)!,
    header: () => undefined,
    onClose: () => undefined,
    abort: () => undefined,
  };
  return { body: "", arrival, permit: open.admit(arrival, "json-rpc", undefined), call: {} as Call };
}

test("a request of a batch that failed is counted as failed, and no other one", async (t) => {
  const settled: (string | undefined)[] = [];
  const gate: Gate = {
    ...open,
    admit: (...given) => ({
      ...open.admit(...given),
      recordOutcome: (failure) => settled.push(failure?.reason),
    }),
  };
  const given = batchRequest();
  await receiveBatch(["bad", "good", "bad", "good"], given, {
    gate,
    receive: (one, its) => {
      if (one === "bad") {
        its.failure = new RpcError("NOT_FOUND", "Bad.");
      }
      return Promise.resolve("{}");
    },
  });
  // The first one is settled by whoever admitted the batch.
  t.is(given.failure?.reason, "NOT_FOUND");
  t.deepEqual(settled, [undefined, "NOT_FOUND", undefined]);
});

for (const [what, lengths, given] of [
  ["answers up to the bound are given", [maxListBytes - 100, 100], [0, 1]],
  ["the first answer is given, however long it is, and nothing after it is looked at", [maxListBytes + 2, 2], [0]],
  ["an answer that does not fit is refused, and nothing after it is looked at", [maxListBytes, 1_000, 2], [0]],
  ["a short answer is given where the bound is reached: it may tell what was done", [maxListBytes, 500, 2], [0, 1]],
] as const) {
  test(`a batch: ${what}`, async (t) => {
    const looked: number[] = [];
    const text = await receiveBatch(
      lengths.map((length, id) => ({ id, length })),
      batchRequest(),
      {
        gate: open,
        receive: (one) => {
          const { id, length } = one as { id: number; length: number };
          looked.push(id);
          // What counts are bytes: each of these characters has two.
          return Promise.resolve(JSON.stringify("é".repeat(length / 2 - 1)));
        },
      },
    );
    const answers = JSON.parse(text!) as (string | { id: number; error: { data: { reason: string } } })[];
    t.deepEqual(
      answers.flatMap((answer, i) => (typeof answer === "string" ? [i] : [])),
      [...given],
    );
    const refused = answers.flatMap((answer) => (typeof answer === "string" ? [] : [answer]));
    t.deepEqual(
      refused.map(({ id, error }) => [id, error.data.reason]),
      lengths.flatMap((_, id) => ((given as readonly number[]).includes(id) ? [] : [[id, "ANSWER_TOO_LARGE"]])),
    );
    t.true(looked.length <= given.length + 1);
    t.false(looked.includes(2));
    t.true(Buffer.byteLength(text!) <= maxResponseBytes);
  });
}
