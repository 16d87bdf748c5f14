/**
 * Finds which of many programs a caller may read, and their owners, with one query each. Used by features other than
 * the reads of programs.
 */
import type { Queries } from "../../db/queries/database.js";
import { readableByIdentity } from "./program-list-store.js";

/** Current access to programs. */
export interface ReadablePrograms {
  /**
   * Returns the addresses of the programs that the caller may read. A deleted program is readable only by its owner. An
   * address without a program is never returned.
   */
  readableOf(addresses: readonly string[], identity: string | undefined): Promise<ReadonlySet<string>>;
  /**
   * Returns the owners of all programs ever created at these addresses. Owners never change. They are not public, so do
   * not return them to callers unchecked.
   */
  ownersOf(addresses: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

export function createReadablePrograms({ dialect: { list }, prepare }: Queries): ReadablePrograms {
  const text = (readable: string): string =>
    `SELECT p.address AS address FROM ${list.table} JOIN programs p ON p.address = ${list.text} WHERE ${readable}`;
  const forAnonymous = prepare<{ readonly address: string }>(text("NOT p.deleted AND p.mode = 'public'"));
  const forIdentity = prepare<{ readonly address: string }>(
    text(`(p.owner = ? OR (NOT p.deleted AND ${readableByIdentity}))`),
  );
  const owners = prepare<{ readonly address: string; readonly owner: string }>(
    `SELECT p.address AS address, p.owner AS owner FROM ${list.table} JOIN programs p ON p.address = ${list.text}`,
  );
  return {
    async ownersOf(addresses) {
      const rows = addresses.length === 0 ? [] : await owners(JSON.stringify(addresses));
      return new Map(rows.map(({ address, owner }) => [address, owner]));
    },
    async readableOf(addresses, identity) {
      if (addresses.length === 0) {
        return new Set();
      }
      const keys = JSON.stringify(addresses);
      const rows =
        identity === undefined
          ? await forAnonymous(keys)
          : await forIdentity(keys, identity, identity, identity, identity, identity);
      return new Set(rows.map(({ address }) => address));
    },
  };
}
