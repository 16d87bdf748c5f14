import test from "ava";
import type { SharedUsage } from "../../src/edge/edge.js";
import { createUsageSharing, type UsageParty } from "../../src/workers/usage.js";

const a = "192.0.2.1";
const b = "192.0.2.2";
const nothing: SharedUsage = { places: [], charges: [], shutOut: [] };
const streams = (count: number) => ({ connections: 0, requests: 0, streams: count, bytes: 0 });

/** Parties that note what they hear. */
function join(sharing: ReturnType<typeof createUsageSharing>, count: number) {
  return Array.from({ length: count }, () => {
    const heard: SharedUsage[] = [];
    const party: UsageParty = { hear: (usage) => void heard.push(usage) };
    sharing.join(party);
    return { party, heard };
  });
}

test("each hears what all others have, of what is new to him, and never of his own", (t) => {
  const sharing = createUsageSharing();
  const [one, two, three] = join(sharing, 3) as [ReturnType<typeof join>[0], ...ReturnType<typeof join>];
  sharing.take(one.party, { ...nothing, places: [[a, streams(2)]], charges: [[a, 5]] });
  sharing.take(two!.party, { ...nothing, places: [[a, streams(3)]], charges: [[a, 1]], shutOut: [b] });
  sharing.share();
  t.deepEqual(one.heard, [{ places: [[a, streams(3)]], charges: [[a, 1]], shutOut: [b] }]);
  t.deepEqual(two!.heard, [{ places: [[a, streams(2)]], charges: [[a, 5]], shutOut: [] }]);
  t.deepEqual(three!.heard, [{ places: [[a, streams(5)]], charges: [[a, 6]], shutOut: [b] }]);
  sharing.share();
  t.deepEqual(
    [one, two!, three!].map(({ heard }) => heard.length),
    [1, 1, 1],
  );
  sharing.take(one.party, { ...nothing, places: [[a, streams(0)]] });
  sharing.share();
  t.deepEqual(three!.heard[1], { places: [[a, streams(3)]], charges: [], shutOut: [] });
  t.is(one.heard.length, 1);
});

test("what one had who is gone nobody has; who comes anew hears of all there is", (t) => {
  const sharing = createUsageSharing();
  const [one, two] = join(sharing, 2);
  sharing.take(one!.party, { ...nothing, places: [[a, streams(2)]] });
  sharing.take(two!.party, { ...nothing, places: [[b, streams(1)]] });
  sharing.share();
  sharing.leave(one!.party);
  const [three] = join(sharing, 1);
  sharing.share();
  t.deepEqual(two!.heard[1]?.places, [[a, streams(0)]]);
  t.deepEqual(three!.heard, [{ places: [[b, streams(1)]], charges: [], shutOut: [] }]);
  // What comes late from one that is gone changes nothing.
  sharing.take(one!.party, { ...nothing, places: [[a, streams(9)]] });
  sharing.share();
  t.is(two!.heard.length, 3);
  t.deepEqual(two!.heard[2]?.places, [[a, streams(0)]]);
});
