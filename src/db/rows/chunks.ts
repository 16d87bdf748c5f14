/** Most rows of one statement: SQLite takes 500 at most the way they are written. */
const maxRows = 400;

/** Pieces of a list that every engine takes in one statement, or smaller ones. */
export function inChunks<T>(items: readonly T[], rows = maxRows): T[][] {
  return Array.from({ length: Math.ceil(items.length / rows) }, (_, i) => items.slice(i * rows, (i + 1) * rows));
}
