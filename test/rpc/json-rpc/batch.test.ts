import test from "ava";
import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { Failure } from "../../../src/rpc/errors.js";
import type { Gate } from "../../../src/rpc/gate.js";
import { HttpArrival } from "../../../src/rpc/http/http-exchange.js";
import { receiveBatch } from "../../../src/rpc/json-rpc/batch.js";
import type { JsonRpcRequest } from "../../../src/rpc/json-rpc/request.js";
import type { Call } from "../../../src/rpc/service.js";

test("a request of a batch that failed is counted as failed, and no other one", async (t) => {
  const settled: (string | undefined)[] = [];
  const gate: Gate = {
    admit: (arrival) => ({ arrival, startMs: 0, caller: { address: "", identity: undefined }, headers: [] }),
    settle: (_admission, failure) => settled.push(failure?.reason),
  };
  const request = new IncomingMessage(new Socket());
  const arrival = new HttpArrival("1", "json-rpc", request, undefined);
  const given: JsonRpcRequest = { body: "", request, arrival, call: {} as Call };
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
