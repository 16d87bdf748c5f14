/** Long work in short batches that yield to the event loop in between, so that nobody else waits for all of it. */

/** Resolves when the event loop has looked at everything else. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Maps a list, `batchSize` items at a time. */
export async function mapYielding<T, R>(items: readonly T[], batchSize: number, map: (item: T) => R): Promise<R[]> {
  const results: R[] = [];
  for (const [i, item] of items.entries()) {
    if (i > 0 && i % batchSize === 0) {
      await nextTurn();
    }
    results.push(map(item));
  }
  return results;
}
