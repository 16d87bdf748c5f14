/** Runs long work in short batches that yield to the event loop, so that other work is not blocked. */

import { Flow } from "./fair-scheduler.js";
import { batchTurns } from "./turns.js";

/** Long work of requests. It takes turns with that of the node itself, such as for blocks, which no client can delay. */
export const requestWork = new Flow();
const nodeWork = new Flow();

/** Waits for the turn of long work in a later tick, after pending I/O callbacks. */
export function yieldToEventLoop(work = nodeWork): Promise<void> {
  return batchTurns.turn(work);
}

/** Runs a generator to its end without yielding to the event loop and returns its result. */
export function runWithoutYielding<T>(work: Iterator<void, T>): T {
  for (;;) {
    const { done, value } = work.next();
    if (done === true) {
      return value;
    }
  }
}

/** Runs a generator to its end and returns its result. Yields to the event loop wherever the generator yields. */
export async function runYielding<T>(work: Iterator<void, T>): Promise<T> {
  for (;;) {
    const { done, value } = work.next();
    if (done === true) {
      return value;
    }
    await yieldToEventLoop();
  }
}

/** Length of a batch in milliseconds. Time is measured because an item may take a microsecond or some milliseconds. */
const maxTickMs = 3;

/** Yields the items of a list. Yields to the event loop after each batch of 3 ms. */
export async function* eachYielding<T>(items: Iterable<T>, work = nodeWork): AsyncGenerator<T, void> {
  let sinceMs = performance.now();
  for (const item of items) {
    if (performance.now() - sinceMs > maxTickMs) {
      await yieldToEventLoop(work);
      sinceMs = performance.now();
    }
    yield item;
  }
}

/** Maps a list, one item at a time. Yields to the event loop after each batch of 3 ms. */
export async function mapYielding<T, R>(
  items: readonly T[],
  map: (item: T) => R | Promise<R>,
  work = nodeWork,
): Promise<R[]> {
  const results: R[] = [];
  for await (const item of eachYielding(items, work)) {
    results.push(await map(item));
  }
  return results;
}
