/** A seed determines the faults and the load, whatever the nodes do. */
import test from "ava";
import { createOperations } from "../../tools/campaign/load/operations.js";
import { createProgramStates } from "../../tools/campaign/model/programs.js";
import { planRound } from "../../tools/campaign/schedule.js";
import { type FaultKind, faultKinds } from "../../tools/campaign/settings.js";
import { createChance } from "../helpers/wire/hostile-values.js";
import { testKey } from "../helpers/chain/keys.js";

const kinds = faultKinds;
const titles = (seed: number): string[] =>
  Array.from({ length: 300 }, (_, i) => planRound(seed, i + 1, kinds))
    .flat()
    .map(({ kind, target, title }) => `${kind} ${target} ${title}`);

test("a seed repeats its faults, and another seed has others", (t) => {
  t.deepEqual(titles(5), titles(5));
  t.notDeepEqual(titles(5), titles(6));
});

test("every kind of fault occurs on each possible node, and never twice at once on one node", (t) => {
  const rounds = Array.from({ length: 300 }, (_, i) => planRound(5, i + 1, kinds));
  const seen = new Set(rounds.flat().map(({ kind, target }) => `${kind} ${target}`));
  const targets: Partial<Record<FaultKind, number[]>> = { join: [1, 2], corrupt: [1, 2], switchover: [0] };
  t.deepEqual(
    [...seen].sort(),
    kinds.flatMap((kind) => (targets[kind] ?? [0, 1, 2]).map((node) => `${kind} ${node}`)).sort(),
  );
  t.true(rounds.some((faults) => faults.length === 2));
  t.true(rounds.every((faults) => new Set(faults.map(({ target }) => target)).size === faults.length));
});

test("a seed repeats its operations, and each is valid after the earlier ones", (t) => {
  const createSent = (seed: number) => {
    const operations = createOperations(createChance(seed), testKey(7), "0x00");
    return Array.from({ length: 500 }, () => operations.next(0).sent);
  };
  t.deepEqual(createSent(1), createSent(1));
  const states = createProgramStates();
  const seen = new Set<string>();
  for (const [i, { change, nonce }] of createSent(2).entries()) {
    t.is(nonce, i + 1);
    t.is(states.apply(change, i + 1), undefined);
    seen.add(change.kind);
  }
  t.is(seen.size, 8, "all kinds of changes");
});
