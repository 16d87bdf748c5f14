import test from "ava";
import { createChallenges } from "../../src/peers/handshake/challenges.js";

test("a challenge is valid for 30 s, once, and only on the node that issued it", (t) => {
  let nowMs = 1_000_000;
  const challenges = createChallenges(() => nowMs);
  const one = challenges.create();
  challenges.markUsed(one);
  t.throws(() => challenges.markUsed(one), { message: /not issued by this node/ });
  const late = challenges.create();
  nowMs += 30_001;
  t.throws(() => challenges.markUsed(late), { message: /not issued by this node/ });
  const forged = challenges.create();
  forged[30]! ^= 1;
  t.throws(() => challenges.markUsed(forged));
  t.throws(() => challenges.markUsed(createChallenges(() => nowMs).create()));
  t.throws(() => challenges.markUsed(new Uint8Array()));
});

test("remembers at most 10,000 used challenges, each for 30 s", (t) => {
  let nowMs = 1_000_000;
  const challenges = createChallenges(() => nowMs);
  for (let i = 0; i < 10_000; i++) {
    challenges.markUsed(challenges.create());
  }
  t.throws(() => challenges.markUsed(challenges.create()), { message: /Too many concurrent handshakes/ });
  nowMs += 30_001;
  t.notThrows(() => challenges.markUsed(challenges.create()));
});
