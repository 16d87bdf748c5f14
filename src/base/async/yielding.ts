/** Long work in short batches that yield to the event loop in between, so that nobody else waits for all of it. */

/** Resolves when the event loop has looked at everything else. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** The result of work that stops now and then, which nobody need wait for. */
export function atOnce<T>(work: Iterator<void, T>): T {
  for (;;) {
    const { done, value } = work.next();
    if (done === true) {
      return value;
    }
  }
}

/** The same with others having their turn wherever it stops. */
export async function inTurns<T>(work: Iterator<void, T>): Promise<T> {
  for (;;) {
    const { done, value } = work.next();
    if (done === true) {
      return value;
    }
    await yieldToEventLoop();
  }
}

/** How long work goes on before others have their turn: items may take a microsecond or some milliseconds. */
const turnMs = 3;

/** Yields a list item by item, as much of it at a time as a turn is long. */
export async function* eachYielding<T>(items: Iterable<T>): AsyncGenerator<T, void> {
  let sinceMs = performance.now();
  for (const item of items) {
    if (performance.now() - sinceMs > turnMs) {
      await yieldToEventLoop();
      sinceMs = performance.now();
    }
    yield item;
  }
}

/** Maps a list, as much of it at a time as a turn is long. */
export async function mapYielding<T, R>(items: readonly T[], map: (item: T) => R | Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for await (const item of eachYielding(items)) {
    results.push(await map(item));
  }
  return results;
}
