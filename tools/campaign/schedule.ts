/** Plans the faults of each round. The plan depends only on the seed, not on the nodes. */
import { createChance } from "../../test/helpers/wire/hostile-values.js";
import { faults } from "./faults/all.js";
import type { PlannedFault } from "./faults/fault.js";
import type { FaultKind } from "./settings.js";

const allNodes = [0, 1, 2];

/** Plans one or two concurrent faults on different nodes for a round. Rounds are counted from 1. */
export function planRound(seed: number, round: number, kinds: readonly FaultKind[]): PlannedFault[] {
  const chance = createChance(seed * 7_919 + round);
  const first = faults[chance.pick(kinds)];
  const planned = [first.plan(chance, chance.pick(first.targets ?? allNodes))];
  const second = faults[chance.pick(kinds)];
  const isPair = chance.below(10) < 3 && first.isAlone !== true && second.isAlone !== true;
  const free = (second.targets ?? allNodes).filter((node) => node !== planned[0]!.target);
  // Without a free node, both faults target the same one: make only the first.
  return isPair && free.length > 0 ? [...planned, second.plan(chance, chance.pick(free))] : planned;
}

/** Plans a round of a short campaign, in which each kind occurs once. */
export function planOneByOne(seed: number, round: number, kinds: readonly FaultKind[]): PlannedFault[] {
  const kind = kinds[round - 1];
  if (kind === undefined) {
    return [];
  }
  const chance = createChance(seed * 7_919 + round);
  return [faults[kind].plan(chance, chance.pick(faults[kind].targets ?? allNodes))];
}
