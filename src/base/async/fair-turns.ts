/** Shares the event loop among many readers that would each run for long without waiting for anything. */
import { yieldToEventLoop } from "./yielding.js";

/**
 * Creates a function that waits for a turn. Each tick of the event loop has `perTick` turns. Keys, such as client
 * addresses, get turns in rotation, however many callers wait under one key.
 */
export function createFairTurns(perTick: number): (key: string) => Promise<void> {
  const waiting = new Map<string, (() => void)[]>();
  let isRunning = false;

  function giveTurn(): void {
    const [[key, callers]] = waiting as unknown as [[string, (() => void)[]]];
    // The key moves to the end of the rotation.
    waiting.delete(key);
    callers.shift()!();
    if (callers.length > 0) {
      waiting.set(key, callers);
    }
  }

  async function run(): Promise<void> {
    isRunning = true;
    while (waiting.size > 0) {
      for (let i = 0; i < perTick && waiting.size > 0; i++) {
        giveTurn();
      }
      await yieldToEventLoop();
    }
    isRunning = false;
  }

  return (key) =>
    new Promise((resolve) => {
      const callers = waiting.get(key);
      if (callers === undefined) {
        waiting.set(key, [resolve]);
      } else {
        callers.push(resolve);
      }
      if (!isRunning) {
        void run();
      }
    });
}
