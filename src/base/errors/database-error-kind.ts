/**
 * Classifies database errors. Separates a database that is unavailable, unreadable, locked, full, busy or corrupt from an
 * invalid query.
 */

import { errorMessage } from "./error-message.js";

/**
 * Reason for the failure of a valid query:
 * - `unavailable`: the database is unreachable or full.
 * - `unreadable`: its disk cannot be read; the data may be intact.
 * - `busy`: other queries of this process used the database for too long.
 * - `locked`: another process used it for too long. This is harmless unless it continues.
 * - `damaged`: the stored data is corrupt; a retry does not help.
 */
export type DatabaseErrorKind = "unavailable" | "unreadable" | "busy" | "locked" | "damaged";

const kinds = new WeakMap<object, DatabaseErrorKind>();

/** Marks an error as a database error, so that callers may retry. A later mark replaces an earlier one. */
export function markDatabaseError(error: object, kind: DatabaseErrorKind = "unavailable"): void {
  kinds.set(error, kind);
}

export function databaseErrorKindOf(thrown: unknown): DatabaseErrorKind | undefined {
  return typeof thrown === "object" && thrown !== null ? kinds.get(thrown) : undefined;
}

export function isDatabaseError(thrown: unknown): boolean {
  return databaseErrorKindOf(thrown) !== undefined;
}

/** Returns true if the thrown value only means that the database is in use by others: `busy` or `locked`. */
export function isDatabaseBusy(thrown: unknown): boolean {
  const kind = databaseErrorKindOf(thrown);
  return kind === "busy" || kind === "locked";
}

export function isDatabaseCorruption(thrown: unknown): boolean {
  return databaseErrorKindOf(thrown) === "damaged";
}

/**
 * Returns the reason of a database error for `/health`, which is public: the reason that the error carries, or the
 * engine's code; "no connection" for an error without either, and the message of any other error.
 */
export function publicReasonOf(error: unknown): string {
  const { code, publicReason } = error as NodeJS.ErrnoException & { readonly publicReason?: string };
  return publicReason ?? code ?? (isDatabaseError(error) ? "no connection" : errorMessage(error));
}

const explanations = new WeakMap<object, () => Error>();

/** Stores the function that returns the error for the operator in place of a database error. */
export function setOperatorError(error: object, explain: () => Error): void {
  explanations.set(error, explain);
}

/** Returns the error for the operator in place of a database error; any other thrown value as it is. */
export function operatorErrorFor(thrown: unknown): unknown {
  return typeof thrown === "object" && thrown !== null ? (explanations.get(thrown)?.() ?? thrown) : thrown;
}
