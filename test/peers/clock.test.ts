/** An authority with a wrong clock signs nothing that its peers would reject. */
import test from "ava";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { createNodeClock } from "../../src/node/lifecycle/clock.js";
import { createNetworkTime } from "../../src/node/network/network-monitors.js";
import { type BookEntry, entryOf } from "../../src/peers/address-book/peer.js";
import { testKey } from "../helpers/chain/keys.js";
import {
  chainFailure,
  endpointOf,
  headOf,
  healthOf,
  type NetworkNode,
  networkOf,
  startMemberOf,
  startProcessOf,
  untilPolled,
  untilReady,
} from "../helpers/nodes/network.js";
import { askJson } from "../helpers/wire/plain-client.js";
import { readFailure } from "../helpers/wire/rpc-clients.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { clientOf, statusOf, submit } from "../helpers/chain/submit.js";
import { eventually, until } from "../helpers/nodes/until.js";

const authority = testKey(1);
const { genesis } = networkOf(authority);
const hourMs = 3_600_000;

/** Starts an authority whose clock a test can set ahead, and a function that does so. */
async function startProducer(t: Teardown, aheadMs: number, node: Partial<NetworkNode> = {}) {
  const clockFile = join(await temporaryDirectory(t), "clock");
  const setAhead = (ms: number): Promise<void> => writeFile(clockFile, String(ms));
  await setAhead(aheadMs);
  const hook = new URL("../helpers/process/shifted-clock.js", import.meta.url).href;
  const wrapper = ["env", `NODE_OPTIONS=--import=${hook}`, `CLOCK_FILE=${clockFile}`];
  const producer = await startProcessOf(t, { key: authority, genesis, wrapper, ...node });
  const failure = async (): Promise<string> => await chainFailure(producer);
  return { producer, setAhead, failure };
}

test("an authority whose clock jumps an hour ahead produces no blocks until the clock is right", async (t) => {
  t.timeout(180_000);
  const { producer, setAhead, failure } = await startProducer(t, 0);
  const follower = await startMemberOf(t, { key: testKey(2), genesis, seeds: [endpointOf(producer)] });
  const [atProducer, atFollower] = [clientOf(t, producer), clientOf(t, follower)];
  const isIncluded = async (hash: string): Promise<boolean> =>
    (await statusOf(atFollower, hash)).status === TransactionStatus.INCLUDED;
  await untilReady(producer);
  const first = await submit(atProducer, 1);
  await eventually("both have the block", () => isIncluded(first));

  await setAhead(hourMs);
  await until(async () => (await failure()) !== "");
  t.regex(await failure(), /^This node's clock is 3[56]\d\d s ahead of its peers' clocks; the node produces no blocks/);
  t.like(readFailure(await t.throwsAsync(submit(atProducer, 2))), { reason: "STATE_NOT_READY" });
  // A transaction that another node accepted stays pending, although the wrong clock says that it has expired.
  const waiting = await submit(atFollower, 3);
  await untilPolled(producer, 5);
  t.is((await headOf(producer)).number, 1);
  t.false(await isIncluded(waiting));

  await setAhead(0);
  await eventually("the block is produced", () => isIncluded(waiting));
  t.is(await failure(), "");
  const { timestamp } = (await askJson<{ header: { timestamp: number } }>(producer.port, "/chain/blocks/2")).header;
  t.true(timestamp <= Date.now());
  t.is((await headOf(producer)).hash, (await headOf(follower)).hash);
  await eventually("the follower accepts transactions", async () => (await healthOf(follower)).accepting);
});

test("an authority that starts with a wrong clock produces no blocks once a peer has sent its time", async (t) => {
  t.timeout(180_000);
  const follower = await startMemberOf(t, { key: testKey(2), genesis });
  const member = { seeds: [endpointOf(follower)], flags: { recover: false } };
  const { producer, setAhead, failure } = await startProducer(t, hourMs, member);
  await eventually("the node reports the wrong clock", async () => (await failure()) !== "");
  await setAhead(0);
  await eventually("the node is healthy", async () => (await failure()) === "");
  t.is((await headOf(producer)).number, 0);
});

const entry = (endpoint: string, clockOffsetMs: number | undefined, changes: Partial<BookEntry> = {}): BookEntry => ({
  ...entryOf({ endpoint, origin: "handshake", verifiedMs: 1 }),
  clockOffsetMs,
  ...changes,
});

test("the network time is the median of the peers, one for each site; configured peers override the others", (t) => {
  const crowd = (site: string, count: number) =>
    Array.from({ length: count }, (_, i) => entry(`${site}${i}`, -9_000_000));
  for (const [entries, expected] of [
    [[], undefined],
    [[entry("a1", undefined)], undefined],
    [[entry("a1", 5, { verifiedMs: undefined })], undefined],
    [[entry("a1", 5)], 1_005],
    [[entry("a1", 5), entry("b1", 9)], 1_009],
    [[entry("a1", 5), entry("b1", 9), entry("c1", 7)], 1_007],
    [[...crowd("x", 20), entry("a1", 5)], 1_005],
    [[...crowd("x", 20), ...crowd("y", 1), ...crowd("z", 1), entry("a1", 5, { origin: "file" })], 1_005],
  ] as const) {
    const networkTime = createNetworkTime({
      ...{ entries: () => entries, isNamed: ({ origin }) => origin === "file", monotonicMs: () => 1_000 },
      siteOf: (endpoint) => endpoint.slice(0, 1),
    });
    t.is(networkTime(), expected);
  }
});

test("allows half of the tolerance of peers, and everything without peers", (t) => {
  const clock = createNodeClock();
  t.is(clock.whyAhead(Date.now() + hourMs), undefined);
  let peersMs: number | undefined;
  clock.compareWith(() => peersMs);
  t.is(clock.whyAhead(Date.now() + hourMs), undefined);
  peersMs = Date.now() - 25_000;
  t.is(clock.whyAhead(), undefined);
  t.regex(clock.whyAhead(Date.now() + 20_000)!, /^The time of the latest block is 45 s ahead of the peers' clocks/);
  peersMs = Date.now() - 40_000;
  t.regex(clock.whyAhead()!, /^This node's clock is 40 s ahead/);
  // A clock that is behind signs the time of the previous block, which peers accept.
  peersMs = Date.now() + hourMs;
  t.is(clock.whyAhead(), undefined);
});
