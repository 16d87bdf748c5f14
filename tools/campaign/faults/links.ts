/** Faults of the wires between nodes. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Chance, createChance } from "../../../test/helpers/wire/hostile-values.js";
import type { Link, Links } from "../nodes/links.js";
import { nodeNames } from "../nodes/network.js";
import { type Fault, inSeconds } from "./fault.js";

/** Elsewhere a wire cannot know who calls. */
const onLinux = (): string | undefined =>
  process.platform === "linux" ? undefined : "only Linux has an address for each node that calls";

/** Some wires of a node: all, or those to one other. */
function drawLinks(chance: Chance, target: number) {
  const other = (target + 1 + chance.below(2)) % 3;
  return chance.pick([
    { whose: "all wires", of: (links: Links): readonly Link[] => links.of(target) },
    { whose: `the wires to ${nodeNames[other]!}`, of: (links: Links): readonly Link[] => links.between(target, other) },
  ]);
}

/** Wires that are cut, or slow. */
export const cut: Fault = {
  kind: "cut",
  does: "cuts wires of a node for 2 to 10 s, or makes them slow (0.1 to 1 s for each piece)",
  whyNot: onLinux,
  plan(chance, target) {
    const { whose, of } = drawLinks(chance, target);
    const [forMs, delayMs] = [2_000 + chance.below(8_000), chance.pick([0, 0, 100 + chance.below(900)])];
    const how = delayMs === 0 ? "cut" : `slow by ${delayMs} ms`;
    return {
      ...{ kind: "cut", target, title: `${whose} ${how} for ${inSeconds(forMs)}` },
      async run({ network: { links } }) {
        const cut = of(links);
        cut.forEach((link) => Object.assign(link, delayMs === 0 ? { isCut: true } : { delayMs }));
        if (delayMs === 0) {
          links.hangUp(cut);
        }
        await sleep(forMs);
        cut.forEach((link) => Object.assign(link, { isCut: false, delayMs: 0 }));
      },
    };
  },
};

/** Wires that lose what they carry. */
export const loss: Fault = {
  kind: "loss",
  does: "lets wires lose what is sent: silent for 2 to 12 s, or pieces that come late and connections that break",
  whyNot: onLinux,
  plan(chance, target) {
    const { whose, of } = drawLinks(chance, target);
    const [forMs, isSilent, seed] = [2_000 + chance.below(10_000), chance.below(2) === 0, chance.below(1_000_000)];
    const how = isSilent ? "silent" : "lossy";
    return {
      ...{ kind: "loss", target, title: `${whose} ${how} for ${inSeconds(forMs)}` },
      async run({ network: { links } }) {
        const bad = of(links);
        const drawn = createChance(seed);
        // A lost piece comes when it is sent again.
        const late = (): number => (drawn.below(10) < 3 ? 200 + drawn.below(400) : 0);
        bad.forEach((link) => Object.assign(link, isSilent ? { isSilent } : { delayMs: late }));
        for (const endMs = performance.now() + forMs; performance.now() < endMs;) {
          await sleep(Math.min(500, Math.max(1, endMs - performance.now())));
          if (!isSilent && drawn.below(3) === 0) {
            links.hangUp([drawn.pick(bad)]);
          }
        }
        bad.forEach((link) => Object.assign(link, { isSilent: false, delayMs: 0 }));
        // What has a hole in it is not carried on.
        links.hangUp(isSilent ? bad : []);
      },
    };
  },
};
