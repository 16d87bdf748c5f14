/** Counts ticks of the event loop, so that a test can limit the work in one tick. */
import type { Teardown } from "../nodes/teardown.js";

/** Counts until the test ends. Returns a function that returns the number of the current tick. */
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

/** Adds up the work in each tick. */
export function createTally(turn: () => number) {
  const byTurn = new Map<number, number>();
  return {
    add(units: number): void {
      byTurn.set(turn(), (byTurn.get(turn()) ?? 0) + units);
    },
    /** The maximum work in one tick. */
    most: () => Math.max(...byTurn.values()),
    all: () => [...byTurn.values()].reduce((sum, units) => sum + units, 0),
  };
}
