/** Plans the faults of each round. The plan depends only on the seed, not on the nodes. */
import { type Chance, createChance } from "../../test/helpers/wire/hostile-values.js";
import { faults } from "./faults/all.js";
import type { PlannedFault } from "./faults/fault.js";
import type { FaultKind } from "./settings.js";

/** Returns the indices of the nodes that a kind of fault may target. */
const targetsOf = (kind: FaultKind): readonly number[] => faults[kind].targets ?? [0, 1, 2];

const chanceOf = (seed: number, round: number): Chance => createChance(seed * 7_919 + round);

function plan(chance: Chance, kind: FaultKind, targets = targetsOf(kind)): PlannedFault {
  const target = chance.pick(targets);
  const planned = faults[kind].plan(chance, target);
  const { title } = planned;
  return { kind, target, title, run: (stage) => planned.run(stage, stage.network.nodes[target]!) };
}

/** Plans one or two concurrent faults on different nodes for a round. Rounds are counted from 1. */
export function planRound(seed: number, round: number, kinds: readonly FaultKind[]): PlannedFault[] {
  const chance = chanceOf(seed, round);
  const first = plan(chance, chance.pick(kinds));
  const second = chance.pick(kinds);
  const isPair = chance.below(10) < 3 && ![first.kind, second].some((kind) => faults[kind].isAlone);
  const free = targetsOf(second).filter((node) => node !== first.target);
  // Without a free node, both faults target the same one: make only the first.
  return isPair && free.length > 0 ? [first, plan(chance, second, free)] : [first];
}

/** Plans a round of a short campaign, in which each kind occurs once. */
export function planOneByOne(seed: number, round: number, kinds: readonly FaultKind[]): PlannedFault[] {
  const kind = kinds[round - 1];
  return kind === undefined ? [] : [plan(chanceOf(seed, round), kind)];
}
