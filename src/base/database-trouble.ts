/** Tells errors of a database that is away, locked or full from those of a query that is wrong. */

const troubles = new WeakSet();

/** Marks an error as one of the database being away, locked or full: whoever asks may try again. */
export function markDatabaseTrouble(error: object): void {
  troubles.add(error);
}

/** Whether what was thrown is so marked. */
export function isDatabaseTrouble(thrown: unknown): boolean {
  return typeof thrown === "object" && thrown !== null && troubles.has(thrown);
}
