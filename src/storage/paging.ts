import { addressForm } from "../base/signed-texts.js";
import { Failure } from "../rpc/errors.js";
import { makePageToken, readPageToken } from "../rpc/parameters.js";

/** A page of a list. */
export interface Page {
  readonly limit: number;
  readonly offset: number;
  /** Address of the program that the page comes after; the first page when undefined. */
  readonly after?: string | undefined;
}

const defaultLimit = 50;
const maxLimit = 200;
/** Passing over rows costs time for each; further down, a narrower question is the better one. */
const maxOffset = 100_000;

/** What is asked of a list. */
export interface PageQuestion {
  readonly limit?: number;
  readonly offset?: number;
  readonly pageToken?: string;
}

/**
 * Checks `limit` (1 to 200, default 50), `offset` (0 to 100,000, default 0) and `page_token`.
 *
 * @throws Failure INVALID_REQUEST
 */
export function toPage({ limit, offset, pageToken }: PageQuestion): Page {
  const [after] = readPageToken("programs", [addressForm], pageToken) ?? [];
  const page = { limit: limit ?? defaultLimit, offset: offset ?? 0, after };
  if (page.limit < 1 || page.limit > maxLimit) {
    throw new Failure("INVALID_REQUEST", `limit must be a whole number from 1 to ${maxLimit}.`);
  }
  if (page.offset > maxOffset) {
    throw new Failure("INVALID_REQUEST", `offset must be a whole number from 0 to ${maxOffset}.`);
  }
  return page;
}

/**
 * The programs of a page, and the token of the next one where there is one. It is made of what the page shows: how many
 * others there are between two programs is not told.
 *
 * @param list gives the programs of a page.
 */
export async function readPage<Entry extends { readonly address: string }>(
  page: Page,
  list: (page: Page) => Promise<readonly Entry[]>,
): Promise<{ readonly entries: readonly Entry[]; readonly nextPageToken?: string }> {
  const found = await list({ ...page, limit: page.limit + 1 });
  const entries = found.slice(0, page.limit);
  return found.length > entries.length
    ? { entries, nextPageToken: makePageToken("programs", entries.at(-1)!.address) }
    : { entries };
}
