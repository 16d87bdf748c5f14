import test from "ava";
import type { SharedUsage } from "../../src/edge/edge.js";
import { createUsageSharing, type UsageMember } from "../../src/workers/usage.js";

const a = "192.0.2.1";
const b = "192.0.2.2";
const nothing: SharedUsage = { usages: [], charges: [], banned: [] };
const streams = (count: number) => ({ connections: 0, requests: 0, streams: count, bytes: 0 });

/** Creates processes that record the usage they receive. */
function join(sharing: ReturnType<typeof createUsageSharing>, count: number) {
  return Array.from({ length: count }, () => {
    const received: SharedUsage[] = [];
    const party: UsageMember = { receive: (usage) => void received.push(usage) };
    sharing.join(party);
    return { party, received };
  });
}

test("sends each process the changed usage of the others, without its own", (t) => {
  const sharing = createUsageSharing();
  const [one, two, three] = join(sharing, 3) as [ReturnType<typeof join>[0], ...ReturnType<typeof join>];
  sharing.report(one.party, { ...nothing, usages: [[a, streams(2)]], charges: [[a, 5]] });
  sharing.report(two!.party, { ...nothing, usages: [[a, streams(3)]], charges: [[a, 1]], banned: [b] });
  sharing.share();
  t.deepEqual(one.received, [{ usages: [[a, streams(3)]], charges: [[a, 1]], banned: [b] }]);
  t.deepEqual(two!.received, [{ usages: [[a, streams(2)]], charges: [[a, 5]], banned: [] }]);
  t.deepEqual(three!.received, [{ usages: [[a, streams(5)]], charges: [[a, 6]], banned: [b] }]);
  sharing.share();
  t.deepEqual(
    [one, two!, three!].map(({ received }) => received.length),
    [1, 1, 1],
  );
  sharing.report(one.party, { ...nothing, usages: [[a, streams(0)]] });
  sharing.share();
  t.deepEqual(three!.received[1], { usages: [[a, streams(3)]], charges: [], banned: [] });
  t.is(one.received.length, 1);
});

test("removes the usage of a process that left, and sends everything to a new one", (t) => {
  const sharing = createUsageSharing();
  const [one, two] = join(sharing, 2);
  sharing.report(one!.party, { ...nothing, usages: [[a, streams(2)]] });
  sharing.report(two!.party, { ...nothing, usages: [[b, streams(1)]] });
  sharing.share();
  sharing.leave(one!.party);
  const [three] = join(sharing, 1);
  sharing.share();
  t.deepEqual(two!.received[1]?.usages, [[a, streams(0)]]);
  t.deepEqual(three!.received, [{ usages: [[b, streams(1)]], charges: [], banned: [] }]);
  // A late report of a process that left changes nothing.
  sharing.report(one!.party, { ...nothing, usages: [[a, streams(9)]] });
  sharing.share();
  t.is(two!.received.length, 3);
  t.deepEqual(two!.received[2]?.usages, [[a, streams(0)]]);
});
