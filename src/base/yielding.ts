/** Long work in short pieces, so that everybody else gets a turn of the event loop in between. */

/** Maps a list, so many items in each turn. */
export async function mapInTurns<T, R>(items: readonly T[], perTurn: number, map: (item: T) => R): Promise<R[]> {
  const results: R[] = [];
  for (const [i, item] of items.entries()) {
    if (i > 0 && i % perTurn === 0) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    results.push(map(item));
  }
  return results;
}
