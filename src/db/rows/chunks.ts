/** Limit on rows of one statement. The SQL that knex writes for an insert allows 500 rows on SQLite. */
const maxRows = 400;

/** Splits a list into chunks of at most `rows` items. Every engine accepts the default in one statement. */
export function inChunks<T>(items: readonly T[], rows = maxRows): T[][] {
  return Array.from({ length: Math.ceil(items.length / rows) }, (_, i) => items.slice(i * rows, (i + 1) * rows));
}
