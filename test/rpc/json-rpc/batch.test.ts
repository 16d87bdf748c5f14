import test from "ava";
import { Failure } from "../../../src/rpc/errors.js";
import type { Arrival, Gate } from "../../../src/rpc/gate.js";
import { createOpenGate } from "../../../src/edge/open-gate.js";
import { receiveBatch } from "../../../src/rpc/json-rpc/batch.js";
import type { JsonRpcRequest } from "../../../src/rpc/json-rpc/request.js";
import type { Call } from "../../../src/rpc/service.js";

test("a request of a batch that failed is counted as failed, and no other one", async (t) => {
  const settled: (string | undefined)[] = [];
  const open = createOpenGate();
  const gate: Gate = {
    ...open,
    admit: (...given) => ({
      ...open.admit(...given),
      settle: (failure) => settled.push(failure?.reason),
    }),
  };
  const arrival: Arrival = {
    requestId: "1",
    connection: gate.connect("", () => undefined)!,
    header: () => undefined,
    onClose: () => undefined,
    cut: () => undefined,
  };
  const lease = open.admit(arrival, "json-rpc", undefined);
  const given: JsonRpcRequest = { body: "", arrival, lease, call: {} as Call };
  await receiveBatch(["bad", "good", "bad", "good"], given, {
    gate,
    receive: (one, its) => {
      if (one === "bad") {
        its.failure = new Failure("NOT_FOUND", "Bad.");
      }
      return Promise.resolve("{}");
    },
  });
  // The first one is settled by whoever admitted the batch.
  t.is(given.failure?.reason, "NOT_FOUND");
  t.deepEqual(settled, [undefined, "NOT_FOUND", undefined]);
});
