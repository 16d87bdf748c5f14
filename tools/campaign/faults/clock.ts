/** Fault of clocks. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Fault, inSeconds, possible, targetOf } from "./fault.js";

/** Shifts the clock of a node for some seconds. */
export const clock: Fault = {
  kind: "clock",
  description: "lets a node's clock jump, by up to 4 minutes forward or back, and mends it after 2 to 10 s",
  unavailableReason: possible,
  plan(chance, target) {
    const jumpMs = chance.pick([1, -1]) * (1_000 + chance.below(239_000));
    const forMs = 2_000 + chance.below(8_000);
    const way = jumpMs > 0 ? "forward" : "back";
    return {
      ...{ kind: "clock", target, title: `clock ${inSeconds(Math.abs(jumpMs))} ${way} for ${inSeconds(forMs)}` },
      async run(stage) {
        const node = targetOf(stage, target);
        await node.shiftClock(jumpMs);
        await sleep(forMs);
        await node.shiftClock(0);
      },
    };
  },
};
