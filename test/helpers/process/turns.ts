/** Counts the turns of the event loop, so that a test can say how much work is done in one of them. */
import type { Teardown } from "../nodes/teardown.js";

/** Counts until the test ends, and returns the function that gives the number of the present turn. */
export function countTurns(t: Teardown): () => number {
  let turn = 0;
  let next = setImmediate(count);
  function count(): void {
    turn++;
    next = setImmediate(count);
  }
  t.teardown(() => clearImmediate(next));
  return () => turn;
}

/** Adds up what is done in each turn. */
export function createTally(turn: () => number) {
  const byTurn = new Map<number, number>();
  return {
    add(units: number): void {
      byTurn.set(turn(), (byTurn.get(turn()) ?? 0) + units);
    },
    /** The most that was done in one turn. */
    most: () => Math.max(...byTurn.values()),
    all: () => [...byTurn.values()].reduce((sum, units) => sum + units, 0),
  };
}
