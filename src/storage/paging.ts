import { Failure } from "../rpc/errors.js";

/** A page of a list. */
export interface Page {
  readonly limit: number;
  readonly offset: number;
}

const defaultLimit = 50;
const maxLimit = 200;
/** Passing over rows costs time for each; further down, a narrower question is the better one. */
const maxOffset = 100_000;

/**
 * Checks `limit` (1 to 200, default 50) and `offset` (0 to 100,000, default 0).
 *
 * @throws Failure INVALID_REQUEST
 */
export function toPage({ limit, offset }: { readonly limit?: number; readonly offset?: number }): Page {
  const page = { limit: limit ?? defaultLimit, offset: offset ?? 0 };
  if (page.limit < 1 || page.limit > maxLimit) {
    throw new Failure("INVALID_REQUEST", `limit must be a whole number from 1 to ${maxLimit}.`);
  }
  if (page.offset > maxOffset) {
    throw new Failure("INVALID_REQUEST", `offset must be a whole number from 0 to ${maxOffset}.`);
  }
  return page;
}
