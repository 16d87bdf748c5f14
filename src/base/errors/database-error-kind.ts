/**
 * Tells errors of a database that is away, locked, full or busy, or that holds something else than what was stored, from
 * those of a query that is wrong.
 */

/**
 * Why a query failed that is right: the database is away or full (`unavailable`); others of this process had it for too
 * long (`busy`); somebody outside of it did (`locked`), which is no more than that, unless it goes on; or it holds
 * something else than what was stored (`damaged`), and trying again helps nobody.
 */
export type DatabaseErrorKind = "unavailable" | "busy" | "locked" | "damaged";

const troubles = new WeakMap<object, DatabaseErrorKind>();

/** Marks an error as one of the database: whoever asks may try again. The last mark holds. */
export function markDatabaseError(error: object, trouble: DatabaseErrorKind = "unavailable"): void {
  troubles.set(error, trouble);
}

/** What kind of trouble of the database was thrown; undefined for what is none. */
export function databaseErrorKindOf(thrown: unknown): DatabaseErrorKind | undefined {
  return typeof thrown === "object" && thrown !== null ? troubles.get(thrown) : undefined;
}

/** Whether what was thrown is trouble of the database, of any kind. */
export function isDatabaseError(thrown: unknown): boolean {
  return databaseErrorKindOf(thrown) !== undefined;
}

/** Whether what was thrown tells of a database that others have for a moment, and of nothing worse. */
export function isDatabaseBusy(thrown: unknown): boolean {
  const trouble = databaseErrorKindOf(thrown);
  return trouble === "busy" || trouble === "locked";
}

/** Whether what was thrown tells of a database that holds something else than what was stored. */
export function isDatabaseCorruption(thrown: unknown): boolean {
  return databaseErrorKindOf(thrown) === "damaged";
}
