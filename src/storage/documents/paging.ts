/** Pages of program lists, and their tokens. */
import { addressForm } from "../../base/crypto/signing-payloads.js";
import { defaultPageSize, createPageToken, readPageToken } from "../../rpc/parameters.js";

/** Position and size of a page of a program list. */
export interface ListPage {
  readonly limit: number;
  readonly offset: number;
  /** Address of the program before the page; undefined for the first page. */
  readonly after?: string | undefined;
}

/** Paging parameters of a list request. */
export interface PageRequest {
  readonly limit?: number;
  readonly offset?: number;
  readonly pageToken?: string;
}

/**
 * Reads `limit` (default 50), `offset` (default 0) and `page_token`.
 *
 * @throws RpcError INVALID_REQUEST
 */
export function toPage({ limit, offset, pageToken }: PageRequest): ListPage {
  const [after] = readPageToken("programs", [addressForm], pageToken) ?? [];
  return { limit: limit ?? defaultPageSize, offset: offset ?? 0, after };
}

/**
 * Reads one page of programs, and the token of the next page if there is one. The token contains only an address that
 * the page shows. It does not reveal the number of hidden programs between two listed programs.
 *
 * @param list returns the programs of a page.
 */
export async function readPage<Entry extends { readonly address: string }>(
  page: ListPage,
  list: (page: ListPage) => Promise<readonly Entry[]>,
): Promise<{ readonly entries: readonly Entry[]; readonly nextPageToken?: string }> {
  const found = await list({ ...page, limit: page.limit + 1 });
  const entries = found.slice(0, page.limit);
  return found.length > entries.length
    ? { entries, nextPageToken: createPageToken("programs", entries.at(-1)!.address) }
    : { entries };
}
