/** Errors for invalid parameters, and page tokens, shared by several services. */
import { JsonNumber } from "../base/text/parse-json.js";
import { showText } from "../base/text/show-text.js";
import { RpcError } from "./errors.js";

/** Entries on a page if the request sets no page size. */
export const defaultPageSize = 50;

/** Limit on the length of a token, longer than any valid token. */
const maxTokenLength = 200;

/**
 * Creates the token with which a client requests the next page of a list. Clients must treat the token as opaque, but
 * can decode it: never include values that the client may not know.
 *
 * @param list name of the list.
 * @param values of digits, lowercase letters and hyphens.
 */
export function createPageToken(list: string, ...values: readonly (string | number | bigint)[]): string {
  return Buffer.from([list, ...values].join("."), "latin1").toString("base64url");
}

/**
 * Returns the values of a token; undefined without a token.
 *
 * @param forms one pattern for each value.
 * @throws RpcError INVALID_REQUEST if the token is of another list or malformed.
 */
export function readPageToken(list: string, forms: readonly RegExp[], token: string | undefined): string[] | undefined {
  if (token === undefined || token === "") {
    return undefined;
  }
  const [tokenList, ...values] =
    token.length > maxTokenLength ? [] : Buffer.from(token, "base64url").toString("latin1").split(".");
  const isValid =
    tokenList === list && values.length === forms.length && values.every((value, i) => forms[i]!.test(value));
  if (!isValid || createPageToken(list, ...values) !== token) {
    throw invalidPageToken();
  }
  return values;
}

/** Pattern of a number in a token that fits into a JavaScript number: at most 15 digits. */
export const pageNumber = /^(0|[1-9][0-9]{0,14})$/;

/** Pattern of a list position in a token: at most 9 digits. */
export const pagePosition = /^(0|[1-9][0-9]{0,8})$/;

export function invalidPageToken(): RpcError {
  return new RpcError(
    "INVALID_REQUEST",
    "The page token must be the one that the previous page returned; omit it for the first page.",
  );
}

/**
 * Creates the error for an invalid value. The message has the field's name as the caller writes it, the expected
 * values, and the value, shortened.
 */
export function invalidValue(name: string, expected: string, value: unknown): RpcError {
  return new RpcError("INVALID_REQUEST", `${name} must be ${expected}, not ${formatScalar(value)}.`);
}

export function repeatedParameter(name: string): RpcError {
  return new RpcError("INVALID_REQUEST", `${name} is given more than once.`);
}

/** Formats a scalar as the text that it has in a query, so that the message is the same in every protocol. */
function formatScalar(value: unknown): string {
  if (value instanceof JsonNumber) {
    return showText(value.text);
  }
  if (typeof value === "object" && value !== null) {
    return Array.isArray(value) ? "a list" : "an object";
  }
  return showText(String(value));
}
