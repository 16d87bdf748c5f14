import { RpcError } from "../errors.js";

/** Parameter of a query. The value is undefined without an equals sign. */
export interface QueryParameter {
  readonly name: string;
  readonly value: string | undefined;
}

/**
 * Parses a query as forms encode it: `+` is a space.
 *
 * @param query text after the question mark.
 * @throws RpcError INVALID_REQUEST if the percent-encoding is malformed or is not UTF-8.
 */
export function parseQuery(query: string): QueryParameter[] {
  if (query === "") {
    return [];
  }
  const decode = /[%+]/.test(query) ? decodeForm : asIs;
  return query.split("&").map((pair) => {
    const equals = pair.indexOf("=");
    return equals < 0
      ? { name: decode(pair), value: undefined }
      : { name: decode(pair.slice(0, equals)), value: decode(pair.slice(equals + 1)) };
  });
}

/** Plain values need no decoding; a query may have hundreds. */
const asIs = (text: string): string => text;

function decodeForm(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw new RpcError("INVALID_REQUEST", "The query string has a malformed percent-encoding.");
  }
}
