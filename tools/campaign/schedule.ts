/** Which faults come when: the same for the same seed, whatever the nodes do. */
import { createChance } from "../../test/helpers/wire/hostile-values.js";
import { faults } from "./faults/all.js";
import type { PlannedFault } from "./faults/fault.js";
import type { FaultKind } from "./settings.js";

const allNodes = [0, 1, 2];

/** The faults of a round, one or two at a time, on different nodes; rounds are counted from 1. */
export function planRound(seed: number, round: number, kinds: readonly FaultKind[]): PlannedFault[] {
  const chance = createChance(seed * 7_919 + round);
  const first = faults[chance.pick(kinds)];
  const planned = [first.plan(chance, chance.pick(first.targets ?? allNodes))];
  const second = faults[chance.pick(kinds)];
  const isPair = chance.below(10) < 3 && first.isAlone !== true && second.isAlone !== true;
  const free = (second.targets ?? allNodes).filter((node) => node !== planned[0]!.target);
  // Both may be made for one node alone.
  return isPair && free.length > 0 ? [...planned, second.plan(chance, chance.pick(free))] : planned;
}

/** The faults of a round where each kind comes once. */
export function planOneByOne(seed: number, round: number, kinds: readonly FaultKind[]): PlannedFault[] {
  const kind = kinds[round - 1];
  if (kind === undefined) {
    return [];
  }
  const chance = createChance(seed * 7_919 + round);
  return [faults[kind].plan(chance, chance.pick(faults[kind].targets ?? allNodes))];
}
