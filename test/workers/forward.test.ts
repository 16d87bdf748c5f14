import { create } from "@bufbuild/protobuf";
import test from "ava";
import { setImmediate as turn } from "node:timers/promises";
import { InfoService, ListPeersRequestSchema, ListPeersResponseSchema } from "../../gen/gatehouse/info/v1/info_pb.js";
import { RpcError } from "../../src/rpc/errors.js";
import { serve, type Implementation } from "../../src/rpc/service.js";
import { createForwardHandlers, type Forward, forwardService } from "../../src/workers/forward.js";

const nobody = { caller: { address: "192.0.2.1", identity: undefined }, signal: new AbortController().signal };
const at = (offset: number) => create(ListPeersRequestSchema, { offset });

/** Creates a node that responds when the test says so, with the number of earlier requests. */
function createNode(failsAt = -1) {
  const offsets: number[] = [];
  const waiting: (() => void)[] = [];
  const listPeers: Implementation<typeof InfoService>["listPeers"] = async ({ offset }) => {
    const count = offsets.push(offset ?? 0) - 1;
    await new Promise<void>((resolve) => waiting.push(resolve));
    if (count === failsAt) {
      throw new RpcError("BUSY", "Not now.");
    }
    return create(ListPeersResponseSchema, { nextOffset: count });
  };
  const others = Object.fromEntries(InfoService.methods.map(({ localName }) => [localName, () => ({})]));
  const served = serve(InfoService, { ...others, listPeers } as unknown as Implementation<typeof InfoService>);
  const { calls, streams } = createForwardHandlers([served]);
  const forward: Forward = {
    unary: (call, signal) => calls.rpc(call, signal),
    stream: (call, signal) => streams.rpc(call, signal),
  };
  const answer = async (): Promise<void> => {
    await turn();
    waiting.splice(0).forEach((resolve) => resolve());
    await turn();
  };
  return { offsets, answer, forward };
}

test("shares the next response among equal calls that arrive while a request is in flight", async (t) => {
  const { offsets, answer, forward } = createNode();
  const { listPeers } = forwardService(InfoService, forward, true);
  const ask = async (offset = 0) => (await listPeers(at(offset), nobody)).nextOffset;
  const first = ask();
  const later = [ask(), ask(), ask()];
  const other = ask(7);
  await answer();
  t.is(await first, 0);
  t.is(await other, 1);
  await answer();
  t.deepEqual(await Promise.all(later), [2, 2, 2]);
  const last = ask();
  await answer();
  t.is(await last, 3);
  t.deepEqual(offsets, [0, 7, 0, 0]);
});

test("sends a new request for waiting calls after an error", async (t) => {
  const { answer, forward } = createNode(0);
  const { listPeers } = forwardService(InfoService, forward, true);
  const [first, second] = [listPeers(at(0), nobody), listPeers(at(0), nobody)];
  await Promise.all([t.throwsAsync(Promise.resolve(first), { message: "Not now." }), answer()]);
  await answer();
  t.is((await second).nextOffset, 1);
});

test("forwards each call with its caller if responses depend on the caller", async (t) => {
  const callers: (string | undefined)[] = [];
  const { answer, forward, offsets } = createNode();
  const { listPeers } = forwardService(InfoService, {
    ...forward,
    unary(call, signal) {
      callers.push(call.caller.identity);
      return forward.unary(call, signal);
    },
  });
  const calls = ["0xa", "0xb"].map((identity) =>
    listPeers(at(0), { ...nobody, caller: { ...nobody.caller, identity } }),
  );
  await answer();
  await Promise.all(calls);
  t.deepEqual(callers, ["0xa", "0xb"]);
  t.deepEqual(offsets, [0, 0]);
});

test("rejects an rpc that the node does not have", async (t) => {
  const { calls } = createForwardHandlers([]);
  const call = { service: "a.Service", method: "b", request: new Uint8Array(), caller: nobody.caller };
  await t.throwsAsync(calls.rpc(call, nobody.signal), { message: "There is no rpc b of a.Service here." });
});
