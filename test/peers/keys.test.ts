/** One key in two processes: both find each other out, and whoever sees both says so. */
import test from "ava";
import type { PeerClient } from "../../src/peers/client.js";
import { createDoubles } from "../../src/peers/doubles.js";
import { createKeyWatch } from "../../src/peers/key-watch.js";
import { blank, entryOf } from "../../src/peers/peer.js";
import { testKey } from "../helpers/keys.js";
import { endpointOf, networkOf, peersOf, startMemberOf } from "../helpers/network.js";
import { askJson } from "../helpers/plain-client.js";
import { eventually, until } from "../helpers/until.js";

const authority = testKey(1);
const { genesis } = networkOf(authority);

interface Health {
  readonly status: string;
  readonly subsystems: { readonly chain: { readonly status: string; readonly lastError: { message: string } | null } };
}

async function failureOf({ port }: { readonly port: number }): Promise<string> {
  const { chain } = (await askJson<Health>(port, "/health")).subsystems;
  return chain.status === "failed" ? chain.lastError!.message : "";
}

test("a copy of a node that knows the same peer, and nobody else, is found out by all three", async (t) => {
  t.timeout(180_000);
  const first = await startMemberOf(t, { key: authority, genesis });
  const follower = await startMemberOf(t, { key: testKey(2), genesis, seeds: [endpointOf(first)] });
  await until(async () => (await peersOf(first))[0]?.verification.status === true);
  t.is(await failureOf(first), "");
  const copy = await startMemberOf(t, { key: authority, genesis, seeds: [endpointOf(follower)] });
  await eventually("the follower says so", async () =>
    new RegExp(`^Two processes use the key ${authority.publicKey} of an authority`).test(await failureOf(follower)),
  );
  for (const node of [first, copy]) {
    await eventually("they find each other out", async () =>
      new RegExp(`^Another process uses this node's key ${authority.publicKey}, at https`).test(await failureOf(node)),
    );
  }
  t.is((await askJson<Health>(first.port, "/health")).status, "failing");
});

test("a node that is started again, or has moved, is no second one", async (t) => {
  const first = await startMemberOf(t, { key: authority, genesis });
  const follower = await startMemberOf(t, { key: testKey(2), genesis, seeds: [endpointOf(first)] });
  await until(async () => (await peersOf(follower))[0]?.status.online === true);
  await first.stop();
  const moved = await startMemberOf(t, { key: authority, genesis, seeds: [endpointOf(follower)], dir: first.dir });
  await until(async () => (await peersOf(moved))[0]?.status.ready === true);
  t.is(await failureOf(moved), "");
  t.is(await failureOf(follower), "");
});

test("who was met is asked again, and forgotten when it was not there for a minute", async (t) => {
  let nowMs = 0;
  let answer: { readonly identity: string; readonly instanceId: Buffer } | undefined;
  const client = {
    call: () => (answer === undefined ? Promise.reject(new Error("away")) : Promise.resolve(answer)),
    identityOf: () => answer?.identity,
    drop: () => undefined,
  } as unknown as PeerClient;
  const shown: (readonly string[])[] = [];
  const self = { key: authority, instanceId: Buffer.alloc(16, 1) };
  const keys = createKeyWatch({ self, client, monotonicMs: () => nowMs, onChange: (all) => shown.push(all) });
  await keys.look();
  t.deepEqual(shown, []);
  keys.met("https://a.test:1");
  keys.met("https://a.test:1");
  t.deepEqual(shown, [["https://a.test:1"]]);
  answer = { identity: authority.publicKey, instanceId: Buffer.alloc(16, 2) };
  nowMs = 50_000;
  await keys.look();
  for (const other of [
    undefined,
    { identity: testKey(2).publicKey, instanceId: Buffer.alloc(16, 2) },
    { identity: authority.publicKey, instanceId: Buffer.alloc(16, 1) },
  ]) {
    answer = other;
    nowMs = 110_000;
    await keys.look();
    t.is(shown.length, 1);
  }
  nowMs = 110_001;
  await keys.look();
  t.deepEqual(shown, [["https://a.test:1"], []]);
});

test("an identity has two processes when its holder answers after another one was seen", (t) => {
  let nowMs = 1_000;
  const doubles = createDoubles(() => nowMs);
  const holder = (lastSeenMs: number) => ({ ...entryOf({ ...blank, endpoint: "a", identity: "0x1" }), lastSeenMs });
  t.is(doubles.of(undefined), undefined);
  t.is(doubles.of(holder(2_000)), undefined);
  doubles.saw("0x1", "https://b.test:1");
  t.is(doubles.of(holder(900)), undefined);
  t.is(doubles.of(holder(1_001)), "https://b.test:1");
  nowMs = 200_000;
  t.is(doubles.of(holder(199_999)), undefined);
});
