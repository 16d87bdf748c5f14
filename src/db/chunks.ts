/** Most rows of one statement: SQLite takes 500 at most the way they are written. */
const maxRows = 400;

/** Pieces of a list that every engine takes in one statement. */
export function inChunks<T>(items: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(items.length / maxRows) }, (_, i) =>
    items.slice(i * maxRows, (i + 1) * maxRows),
  );
}
