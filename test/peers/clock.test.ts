/** An authority with a wrong clock signs nothing that its peers would reject. */
import test from "ava";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ChainService, TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { createNodeClock } from "../../src/node/lifecycle/clock.js";
import { createNetworkTime } from "../../src/peers/handshake/network-time.js";
import { type BookEntry, entryOf } from "../../src/peers/address-book/peer.js";
import { connectGrpc } from "../helpers/wire/grpc-client.js";
import { testKey } from "../helpers/chain/keys.js";
import { endpointOf, headOf, networkOf, peersOf, startMemberOf, startProcessOf } from "../helpers/nodes/network.js";
import { askJson } from "../helpers/wire/plain-client.js";
import { readFailure } from "../helpers/wire/rpc-clients.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { createPublic, signTransaction } from "../helpers/chain/transactions.js";
import { eventually, until } from "../helpers/nodes/until.js";

const authority = testKey(1);
const { genesis } = networkOf(authority);
const hourMs = 3_600_000;

interface Health {
  readonly accepting: boolean;
  readonly subsystems: { readonly chain: { readonly status: string; readonly lastError: { message: string } | null } };
}

const health = ({ port }: { readonly port: number }): Promise<Health> => askJson<Health>(port, "/health");

function clientOf(t: Teardown, { port }: { readonly port: number }) {
  const client = connectGrpc(port);
  t.teardown(() => client.close());
  const submit = async (nonce: number): Promise<string> => {
    const transaction = signTransaction(testKey(90), nonce, createPublic(`p${nonce}`, "{}"));
    return (await client.call(ChainService.method.submitTransaction, { transaction })).hash;
  };
  const isIncluded = async (hash: string): Promise<boolean> =>
    (await client.call(ChainService.method.getTransaction, { hash })).status === TransactionStatus.INCLUDED;
  return { submit, isIncluded };
}

test("an authority whose clock jumps an hour ahead produces no blocks until the clock is right", async (t) => {
  t.timeout(180_000);
  const clockFile = join(await temporaryDirectory(t), "clock");
  const setAhead = (ms: number): Promise<void> => writeFile(clockFile, String(ms));
  await setAhead(0);
  const hook = new URL("../helpers/process/shifted-clock.js", import.meta.url).href;
  const producer = await startProcessOf(t, {
    ...{ key: authority, genesis },
    wrapper: ["env", `NODE_OPTIONS=--import=${hook}`, `CLOCK_FILE=${clockFile}`],
  });
  const follower = await startMemberOf(t, { key: testKey(2), genesis, seeds: [endpointOf(producer)] });
  const [atProducer, atFollower] = [clientOf(t, producer), clientOf(t, follower)];
  await eventually("the nodes know each other", async () => (await peersOf(producer))[0]?.status.ready === true);
  const first = await atProducer.submit(1);
  await eventually("both have the block", () => atFollower.isIncluded(first));

  await setAhead(hourMs);
  await until(async () => (await health(producer)).subsystems.chain.status === "failed");
  t.regex(
    (await health(producer)).subsystems.chain.lastError!.message,
    /^This node's clock is 3[56]\d\d s ahead of its peers' clocks; the node produces no blocks/,
  );
  t.like(readFailure(await t.throwsAsync(atProducer.submit(2))), { reason: "STATE_NOT_READY" });
  // A transaction that another node accepted stays pending, although the wrong clock says that it has expired.
  const waiting = await atFollower.submit(3);
  const ticks = async (): Promise<number> =>
    (await askJson<{ main_loop: { iterations_total: number } }>(producer.port, "/health")).main_loop.iterations_total;
  const before = await ticks();
  await until(async () => (await ticks()) >= before + 5);
  t.is((await headOf(producer)).number, 1);
  t.false(await atFollower.isIncluded(waiting));

  await setAhead(0);
  await eventually("the block is produced", () => atFollower.isIncluded(waiting));
  t.is((await health(producer)).subsystems.chain.status, "ready");
  const { timestamp } = (await askJson<{ header: { timestamp: number } }>(producer.port, "/chain/blocks/2")).header;
  t.true(timestamp <= Date.now());
  t.is((await headOf(producer)).hash, (await headOf(follower)).hash);
  await eventually("the follower accepts transactions", async () => (await health(follower)).accepting);
});

test("an authority that starts with a wrong clock produces no blocks once a peer has sent its time", async (t) => {
  t.timeout(180_000);
  const clockFile = join(await temporaryDirectory(t), "clock");
  await writeFile(clockFile, String(hourMs));
  const follower = await startMemberOf(t, { key: testKey(2), genesis });
  const hook = new URL("../helpers/process/shifted-clock.js", import.meta.url).href;
  const producer = await startProcessOf(t, {
    ...{ key: authority, genesis, seeds: [endpointOf(follower)], flags: { recover: false } },
    wrapper: ["env", `NODE_OPTIONS=--import=${hook}`, `CLOCK_FILE=${clockFile}`],
  });
  await eventually(
    "the node reports the wrong clock",
    async () => (await health(producer)).subsystems.chain.status === "failed",
  );
  await writeFile(clockFile, "0");
  await eventually("the node is healthy", async () => (await health(producer)).subsystems.chain.status === "ready");
  t.is((await headOf(producer)).number, 0);
});

const entry = (endpoint: string, clockOffsetMs: number | undefined, changes: Partial<BookEntry> = {}): BookEntry => ({
  ...entryOf({ endpoint, origin: "handshake", verifiedMs: 1 }),
  clockOffsetMs,
  ...changes,
});

function clockOf(entries: readonly BookEntry[]): number | undefined {
  return createNetworkTime({
    entries: () => entries,
    isNamed: ({ origin }) => origin === "file",
    siteOf: (endpoint) => endpoint.slice(0, 1),
    monotonicMs: () => 1_000,
  })();
}

test("the network time is the median of the peers, one for each site; configured peers override the others", (t) => {
  t.is(clockOf([]), undefined);
  t.is(clockOf([entry("a1", undefined)]), undefined);
  t.is(clockOf([entry("a1", 5, { verifiedMs: undefined })]), undefined);
  t.is(clockOf([entry("a1", 5)]), 1_005);
  t.is(clockOf([entry("a1", 5), entry("b1", 9)]), 1_009);
  t.is(clockOf([entry("a1", 5), entry("b1", 9), entry("c1", 7)]), 1_007);
  const crowd = Array.from({ length: 20 }, (_, i) => entry(`x${i}`, -9_000_000));
  t.is(clockOf([...crowd, entry("a1", 5)]), 1_005);
  t.is(
    clockOf([...crowd, entry("y1", -9_000_000), entry("z1", -9_000_000), entry("a1", 5, { origin: "file" })]),
    1_005,
  );
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
