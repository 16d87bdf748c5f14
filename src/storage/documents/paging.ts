import { addressForm } from "../../base/crypto/signing-payloads.js";
import { defaultPageSize, makePageToken, readPageToken } from "../../rpc/parameters.js";

/** A page of a list. */
export interface ListPage {
  readonly limit: number;
  readonly offset: number;
  /** Address of the program that the page comes after; the first page when undefined. */
  readonly after?: string | undefined;
}

/** What is asked of a list. */
export interface PageQuestion {
  readonly limit?: number;
  readonly offset?: number;
  readonly pageToken?: string;
}

/**
 * Reads `limit` (default 50), `offset` (default 0) and `page_token`.
 *
 * @throws Failure INVALID_REQUEST
 */
export function toPage({ limit, offset, pageToken }: PageQuestion): ListPage {
  const [after] = readPageToken("programs", [addressForm], pageToken) ?? [];
  return { limit: limit ?? defaultPageSize, offset: offset ?? 0, after };
}

/**
 * The programs of a page, and the token of the next one where there is one. It is made of what the page shows: how many
 * others there are between two programs is not told.
 *
 * @param list gives the programs of a page.
 */
export async function readPage<Entry extends { readonly address: string }>(
  page: ListPage,
  list: (page: ListPage) => Promise<readonly Entry[]>,
): Promise<{ readonly entries: readonly Entry[]; readonly nextPageToken?: string }> {
  const found = await list({ ...page, limit: page.limit + 1 });
  const entries = found.slice(0, page.limit);
  return found.length > entries.length
    ? { entries, nextPageToken: makePageToken("programs", entries.at(-1)!.address) }
    : { entries };
}
