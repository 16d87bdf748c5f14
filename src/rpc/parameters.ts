/** Forms of parameters that several services read. */
import { noBareHash, noHash, toBareHash, toHash } from "../base/hex-forms.js";
import { Failure } from "./errors.js";

/**
 * A hash as callers write it, in the one form that is stored: 0x and 64 lower-case hex digits.
 *
 * @param name what the hash is, to start the error's sentence.
 * @param text 0x and 64 hex digits in either case.
 * @throws Failure INVALID_REQUEST
 */
export function normalizeHash(name: string, text: string): string {
  const hash = toHash(text);
  if (hash === undefined) {
    throw new Failure("INVALID_REQUEST", noHash(name));
  }
  return hash;
}

/**
 * The same, of what callers may write without 0x, too: hashes of blocks and transactions, public keys.
 *
 * @param beginning of the error's sentence: `A block's hash is`.
 * @throws Failure INVALID_REQUEST
 */
export function normalizeBareHex(beginning: string, text: string): string {
  const hash = toBareHash(text);
  if (hash === undefined) {
    throw new Failure("INVALID_REQUEST", noBareHash(beginning));
  }
  return hash;
}

const defaultPageSize = 50;
const maxPageSize = 200;

/**
 * Checks `page_size`: 1 to 200, default 50.
 *
 * @throws Failure INVALID_REQUEST
 */
export function readPageSize(pageSize: number = defaultPageSize): number {
  if (pageSize < 1 || pageSize > maxPageSize) {
    throw new Failure("INVALID_REQUEST", `pageSize must be a whole number from 1 to ${maxPageSize}.`);
  }
  return pageSize;
}

/** Longer than any token. */
const maxTokenLength = 200;

/**
 * Where the next page of a list goes on, for callers to hand back: what it is made of is none of their business, and
 * must be nothing that they may not know.
 *
 * @param list which list it is of.
 * @param values of digits, lower-case letters and hyphens.
 */
export function makePageToken(list: string, ...values: readonly (string | number | bigint)[]): string {
  return Buffer.from([list, ...values].join("."), "latin1").toString("base64url");
}

/**
 * What a token was made of; undefined without one.
 *
 * @param forms of its values.
 * @throws Failure INVALID_REQUEST for one of another list, or that nobody made.
 */
export function readPageToken(list: string, forms: readonly RegExp[], token: string | undefined): string[] | undefined {
  if (token === undefined || token === "") {
    return undefined;
  }
  const [of, ...values] =
    token.length > maxTokenLength ? [] : Buffer.from(token, "base64url").toString("latin1").split(".");
  const isRight = of === list && values.length === forms.length && values.every((value, i) => forms[i]!.test(value));
  if (!isRight || makePageToken(list, ...values) !== token) {
    throw wrongPageToken();
  }
  return values;
}

/** Numbers of a token, of which each is one of JavaScript's. */
export const pageNumber = /^(0|[1-9][0-9]{0,14})$/;

/** The same, of a place in a list. */
export const pagePosition = /^(0|[1-9][0-9]{0,8})$/;

/** A page token that is none. */
export function wrongPageToken(): Failure {
  return new Failure(
    "INVALID_REQUEST",
    "pageToken must be the nextPageToken of the page before; leave it out for the first page.",
  );
}
