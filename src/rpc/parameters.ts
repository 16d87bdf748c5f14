/** Errors for parameters that are not what they should be, and the tokens of pages, which several services have. */
import { showText } from "../base/text/show-text.js";
import { RpcError } from "./errors.js";

/** How many entries a page has where nobody says how many. */
export const defaultPageSize = 50;

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
export function wrongPageToken(): RpcError {
  return new RpcError(
    "INVALID_REQUEST",
    "The page token must be that of the page before; leave it out for the first page.",
  );
}

/**
 * Builds the error for a value that is not what its field takes: the name as the caller writes it, what the field takes,
 * and the value, shortened.
 */
export function wrongValue(name: string, expected: string, value: unknown): RpcError {
  return new RpcError("INVALID_REQUEST", `${name} must be ${expected}, not ${show(value)}.`);
}

/** Builds the error for a value that is given twice where it may be given once. */
export function givenTwice(name: string): RpcError {
  return new RpcError("INVALID_REQUEST", `${name} is given more than once.`);
}

/** Scalars are shown as the text that they are in a query, so that the sentence is the same in every protocol. */
function show(value: unknown): string {
  if (typeof value === "object" && value !== null) {
    return Array.isArray(value) ? "a list" : "an object";
  }
  return showText(String(value));
}
