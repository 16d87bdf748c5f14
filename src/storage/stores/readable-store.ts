/**
 * Which of many programs a caller may read, and whose they are, in one query: for what is told of programs elsewhere than
 * in their reads.
 */
import type { Queries } from "../../db/queries/database.js";
import { readableByIdentity } from "./program-list-store.js";

/** Says who may read programs now. */
export interface ReadablePrograms {
  /**
   * The addresses, of those that are given, of programs that the caller may read. One that was deleted is its owner's
   * alone, whatever its rule was; one that never was is nobody's.
   */
  readableOf(addresses: readonly string[], identity: string | undefined): Promise<ReadonlySet<string>>;
  /** The owners of those that were ever made, by their addresses. They never change, and are not for everybody to know. */
  ownersOf(addresses: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

/** Builds the reads. */
export function createReadablePrograms({ dialect: { list }, prepare }: Queries): ReadablePrograms {
  const text = (readable: string): string =>
    `SELECT p.address AS address FROM ${list.table} JOIN programs p ON p.address = ${list.text} WHERE ${readable}`;
  const byAnybody = prepare<{ readonly address: string }>(text("NOT p.deleted AND p.mode = 'public'"));
  const byIdentity = prepare<{ readonly address: string }>(
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
          ? await byAnybody(keys)
          : await byIdentity(keys, identity, identity, identity, identity, identity);
      return new Set(rows.map(({ address }) => address));
    },
  };
}
