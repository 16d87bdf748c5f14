/** What `rpc.discover` answers when its document cannot be made. */
import test from "ava";
import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import type { Gate } from "../../../src/rpc/gate.js";
import { HttpArrival } from "../../../src/rpc/http/http-exchange.js";
import { createJsonRpcEntry } from "../../../src/rpc/json-rpc/json-rpc.js";
import type { Call } from "../../../src/rpc/service.js";

test("the caller hears that it failed, and the log why", async (t) => {
  const reported: unknown[] = [];
  const cause = new Error("ENOENT: no such file, open '/opt/secret/contract.binpb'");
  const answer = createJsonRpcEntry({
    gate: {} as Gate,
    nextRequestId: () => "1",
    onInternalError: (error) => reported.push(error),
    methods: [],
    nodeCall: () => Promise.resolve(undefined),
    discover: () => {
      throw cause;
    },
  });
  const request = new IncomingMessage(new Socket());
  const arrival = new HttpArrival("1", "json-rpc", request, undefined);
  const body = '{"jsonrpc":"2.0","id":7,"method":"rpc.discover"}';
  t.deepEqual(JSON.parse((await answer({ body, request, arrival, call: {} as Call }))!), {
    jsonrpc: "2.0",
    id: 7,
    error: { code: -32603, message: "Internal error", data: { reason: "INTERNAL_ERROR", requestId: "1" } },
  });
  t.deepEqual(reported, [cause]);
});
