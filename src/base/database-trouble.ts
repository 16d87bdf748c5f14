/**
 * Tells errors of a database that is away, locked, full or busy, or that holds something else than what was stored, from
 * those of a query that is wrong.
 */

const troubles = new WeakSet();
const busy = new WeakSet();
const damages = new WeakSet();

/** Marks an error as one of the database being away, locked or full: whoever asks may try again. */
export function markDatabaseTrouble(error: object): void {
  troubles.add(error);
}

/** Marks an error as one of others who had the database for too long: it is well, and whoever asks may try again. */
export function markDatabaseBusy(error: object): void {
  troubles.add(error);
  busy.add(error);
}

/** Marks an error as one of a database that holds something else than what was stored: trying again helps nobody. */
export function markDatabaseDamage(error: object): void {
  troubles.add(error);
  damages.add(error);
}

/** Whether what was thrown is so marked, in any way. */
export function isDatabaseTrouble(thrown: unknown): boolean {
  return isIn(troubles, thrown);
}

/** Whether what was thrown tells of a database that is busy, and of nothing worse. */
export function isDatabaseBusy(thrown: unknown): boolean {
  return isIn(busy, thrown);
}

/** Whether what was thrown tells of a database that holds something else than what was stored. */
export function isDatabaseDamage(thrown: unknown): boolean {
  return isIn(damages, thrown);
}

function isIn(marked: WeakSet<object>, thrown: unknown): boolean {
  return typeof thrown === "object" && thrown !== null && marked.has(thrown);
}
