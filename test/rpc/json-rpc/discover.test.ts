/** Response of `rpc.discover` if its document cannot be built. */
import test from "ava";
import { createUnrestrictedGate } from "../../../src/edge/unrestricted-gate.js";
import type { Arrival } from "../../../src/rpc/gate.js";
import { createJsonRpcEntry } from "../../../src/rpc/json-rpc/json-rpc.js";
import type { Call } from "../../../src/rpc/service.js";

test("reports a failed discovery to the caller, and its reason to the log", async (t) => {
  const reported: unknown[] = [];
  const cause = new Error("ENOENT: no such file, open '/opt/secret/contract.binpb'");
  const gate = createUnrestrictedGate();
  const answer = createJsonRpcEntry({
    gate,
    onInternalError: (error) => reported.push(error),
    methods: [],
    nodeCall: () => Promise.resolve("null"),
    discover: () => {
      throw cause;
    },
  });
  const arrival: Arrival = {
    requestId: "1",
    connection: gate.connect("", () => undefined)!,
    header: () => undefined,
    onClose: () => undefined,
    abort: () => undefined,
  };
  const permit = gate.admit(arrival, "json-rpc", undefined);
  const body = '{"jsonrpc":"2.0","id":7,"method":"rpc.discover"}';
  t.deepEqual(JSON.parse((await answer({ body, arrival, permit, call: {} as Call }))!), {
    jsonrpc: "2.0",
    id: 7,
    error: { code: -32603, message: "Internal error", data: { reason: "INTERNAL_ERROR", requestId: "1" } },
  });
  t.deepEqual(reported, [cause]);
});
