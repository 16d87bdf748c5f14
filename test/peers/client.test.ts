/** Channels to peers: one for each endpoint, at most 1,024. */
import test from "ava";
import { PeerService } from "../../gen/gatehouse/peer/v1/peer_pb.js";
import { createPeerClient } from "../../src/peers/handshake/client.js";
import { CallError, type Channel, type OpenChannel } from "../../src/rpc/channel.js";

const endpoint = (n: number): string => `https://198.51.100.1:${n}`;

/** Creates a client with fake channels, and records the opened and closed ones. */
function setUp({ expected, failures = 0 }: { readonly expected?: string; readonly failures?: number } = {}) {
  const opened: string[] = [];
  const closed: string[] = [];
  const openChannel: OpenChannel = ({ authority }) => {
    opened.push(authority);
    return opened.length <= failures
      ? Promise.reject(new CallError("Nobody is there.", false))
      : Promise.resolve({
          identity: "0x1",
          call: () => Promise.resolve({}),
          close: () => void closed.push(authority),
        } as unknown as Channel);
  };
  const client = createPeerClient({
    openChannel,
    resolve: (text) => Promise.resolve({ ip: "198.51.100.1", port: Number(new URL(text).port) }),
    expectedIdentity: () => expected,
    deadlineMs: 1_000,
  });
  const call = (n: number) => client.call(endpoint(n), PeerService.method.getChallenge, {});
  return { client, call, opened, closed };
}

test("shares one channel for each endpoint until it is dropped", async (t) => {
  const { client, call, opened, closed } = setUp();
  await Promise.all([call(1), call(1), call(2)]);
  await call(1);
  t.deepEqual(opened, ["198.51.100.1:1", "198.51.100.1:2"]);
  t.is(client.identityOf(endpoint(1)), "0x1");
  client.drop(endpoint(1));
  t.is(client.identityOf(endpoint(1)), undefined);
  await call(1);
  t.is(opened.length, 3);
  client.close();
  await Promise.resolve();
  t.deepEqual(closed.sort(), ["198.51.100.1:1", "198.51.100.1:1", "198.51.100.1:2"]);
});

test("closes the least recently used channel above 1,024", async (t) => {
  const { call, opened, closed } = setUp();
  for (let n = 1; n <= 1_024; n++) {
    await call(n);
  }
  await call(1);
  t.deepEqual(closed, []);
  await call(2_000);
  t.deepEqual(closed, ["198.51.100.1:2"]);
  await call(1);
  t.is(opened.length, 1_025);
});

test("opens a channel again on the next call after a failure", async (t) => {
  const { call, opened } = setUp({ failures: 1 });
  await t.throwsAsync(call(1), { instanceOf: CallError });
  await t.notThrowsAsync(call(1));
  t.is(opened.length, 2);
});

test("does not call a peer with an unexpected identity", async (t) => {
  const { client, call, closed } = setUp({ expected: "0x2" });
  await t.throwsAsync(call(1), { instanceOf: CallError, message: /does not prove the expected identity/ });
  t.deepEqual(closed, ["198.51.100.1:1"]);
  t.is(client.identityOf(endpoint(1)), undefined);
});
