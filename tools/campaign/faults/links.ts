/** Faults of the links between nodes. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Chance, createChance } from "../../../test/helpers/wire/hostile-values.js";
import type { Link, Links } from "../nodes/links.js";
import { nodeNames } from "../nodes/network.js";
import { type Fault, inSeconds } from "./fault.js";

/** Returns a reason except on Linux: elsewhere a link cannot identify the caller. */
const onLinux = (): string | undefined =>
  process.platform === "linux" ? undefined : "only Linux has an address for each node that calls";

/** Draws links of a node: all, or those to one other node. */
function drawLinks(chance: Chance, target: number) {
  const other = (target + 1 + chance.below(2)) % 3;
  return chance.pick([
    { name: "all wires", of: (links: Links): readonly Link[] => links.of(target) },
    { name: `the wires to ${nodeNames[other]!}`, of: (links: Links): readonly Link[] => links.between(target, other) },
  ]);
}

/** Interrupts links, or slows them down. */
export const cut: Fault = {
  description: "cuts connections of a node for 2 to 10 s, or delays each packet by 0.1 to 1 s",
  unavailableReason: onLinux,
  plan(chance, target) {
    const { name, of } = drawLinks(chance, target);
    const [forMs, delayMs] = [2_000 + chance.below(8_000), chance.pick([0, 0, 100 + chance.below(900)])];
    const effect = delayMs === 0 ? "cut" : `slow by ${delayMs} ms`;
    return {
      title: `${name} ${effect} for ${inSeconds(forMs)}`,
      async run({ network: { links } }) {
        const cut = of(links);
        cut.forEach((link) => Object.assign(link, delayMs === 0 ? { isCut: true } : { delayMs }));
        if (delayMs === 0) {
          links.closeConnections(cut);
        }
        await sleep(forMs);
        cut.forEach((link) => Object.assign(link, { isCut: false, delayMs: 0 }));
      },
    };
  },
};

/** Simulates packet loss: links are silent, or delay packets and close connections. */
export const loss: Fault = {
  description: "silences connections of a node for 2 to 12 s, or delays packets and resets connections at random",
  unavailableReason: onLinux,
  plan(chance, target) {
    const { name, of } = drawLinks(chance, target);
    const [forMs, isSilent, seed] = [2_000 + chance.below(10_000), chance.below(2) === 0, chance.below(1_000_000)];
    const effect = isSilent ? "silent" : "lossy";
    return {
      title: `${name} ${effect} for ${inSeconds(forMs)}`,
      async run({ network: { links } }) {
        const affected = of(links);
        const seeded = createChance(seed);
        // TCP retransmits a lost packet, so it arrives late.
        const drawDelayMs = (): number => (seeded.below(10) < 3 ? 200 + seeded.below(400) : 0);
        affected.forEach((link) => Object.assign(link, isSilent ? { isSilent } : { delayMs: drawDelayMs }));
        for (const endMs = performance.now() + forMs; performance.now() < endMs;) {
          await sleep(Math.min(500, Math.max(1, endMs - performance.now())));
          if (!isSilent && seeded.below(3) === 0) {
            links.closeConnections([seeded.pick(affected)]);
          }
        }
        affected.forEach((link) => Object.assign(link, { isSilent: false, delayMs: 0 }));
        // A stream with missing bytes cannot continue.
        links.closeConnections(isSilent ? affected : []);
      },
    };
  },
};
