import test from "ava";
import type { SharedUsage } from "../../src/edge/edge.js";
import { createUsageSharing, type UsageMember } from "../../src/workers/usage.js";

const [a, b] = ["192.0.2.1", "192.0.2.2"];
const nothing: SharedUsage = { usages: [], charges: [], banned: [] };
const streams = (count: number) => ({ connections: 0, requests: 0, streams: count, bytes: 0 });

test("sends each process the changed usage of the others, also when one leaves or joins", (t) => {
  const sharing = createUsageSharing();
  const join = () => {
    const received: SharedUsage[] = [];
    const member: UsageMember = { receive: (usage) => void received.push(usage) };
    sharing.join(member);
    return { member, take: () => received.splice(0) };
  };
  const [one, two, three] = [join(), join(), join()];
  const share = () => {
    sharing.share();
    return [one, two, three].map(({ take }) => take());
  };
  sharing.report(one.member, { ...nothing, usages: [[a, streams(2)]], charges: [[a, 5]] });
  sharing.report(two.member, { usages: [[a, streams(3)]], charges: [[a, 1]], banned: [b] });
  t.deepEqual(share(), [
    [{ usages: [[a, streams(3)]], charges: [[a, 1]], banned: [b] }],
    [{ usages: [[a, streams(2)]], charges: [[a, 5]], banned: [] }],
    [{ usages: [[a, streams(5)]], charges: [[a, 6]], banned: [b] }],
  ]);
  t.deepEqual(share(), [[], [], []]);
  sharing.report(two.member, { ...nothing, usages: [[a, streams(0)]] });
  const changed = { ...nothing, usages: [[a, streams(2)]] };
  t.deepEqual(share(), [[{ ...nothing, usages: [[a, streams(0)]] }], [], [changed]]);

  sharing.leave(one.member);
  const late = join();
  const left = { ...nothing, usages: [[a, streams(0)]] };
  t.deepEqual(share(), [[], [left], [left]]);
  t.deepEqual(late.take(), []);
  sharing.report(two.member, { ...nothing, usages: [[b, streams(1)]] });
  const joined = join();
  const known = { ...nothing, usages: [[b, streams(1)]] };
  t.deepEqual(share(), [[], [], [known]]);
  t.deepEqual([late.take(), joined.take()], [[known], [known]]);
  // A late report of a process that left changes nothing.
  sharing.report(one.member, { ...nothing, usages: [[a, streams(9)]] });
  t.deepEqual(share(), [[], [left], [left]]);
});
