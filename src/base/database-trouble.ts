/** Tells errors of a database that is away, locked, full or busy from those of a query that is wrong. */

const troubles = new WeakSet();
const busy = new WeakSet();

/** Marks an error as one of the database being away, locked or full: whoever asks may try again. */
export function markDatabaseTrouble(error: object): void {
  troubles.add(error);
}

/** Marks an error as one of others who had the database for too long: it is well, and whoever asks may try again. */
export function markDatabaseBusy(error: object): void {
  troubles.add(error);
  busy.add(error);
}

/** Whether what was thrown is so marked, in either way. */
export function isDatabaseTrouble(thrown: unknown): boolean {
  return isIn(troubles, thrown);
}

/** Whether what was thrown tells of a database that is busy, and of nothing worse. */
export function isDatabaseBusy(thrown: unknown): boolean {
  return isIn(busy, thrown);
}

function isIn(marked: WeakSet<object>, thrown: unknown): boolean {
  return typeof thrown === "object" && thrown !== null && marked.has(thrown);
}
