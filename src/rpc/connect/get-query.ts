/** Query of a Connect call by GET. */
import { decodeBase64 } from "../../base/text/base64.js";
import { type QueryParameter, parseQuery } from "../exchange/query.js";
import { invalidValue, repeatedParameter } from "../parameters.js";

export interface GetQuery {
  readonly encoding: string | undefined;
  /** Name of the compression of the message; undefined without one. */
  readonly compression: string | undefined;
  readonly message: Buffer;
}

const names = ["encoding", "compression", "message", "base64"];

/**
 * Reads the query of a call by GET. Ignores unknown parameters.
 *
 * @throws RpcError INVALID_REQUEST if a parameter is repeated, or if the message is not the base64 that it should be.
 */
export function readGetQuery(query: string): GetQuery {
  const values = new Map<string, QueryParameter["value"]>();
  for (const { name, value } of parseQuery(query)) {
    if (values.has(name) && names.includes(name)) {
      throw repeatedParameter(name);
    }
    values.set(name, value);
  }
  const text = values.get("message") ?? "";
  const message = values.get("base64") === "1" ? decodeBase64(text) : Buffer.from(text);
  if (message === undefined) {
    throw invalidValue("message", "base64, URL-safe or with %2B for each +", text);
  }
  return {
    encoding: values.get("encoding"),
    compression: values.get("compression"),
    message: Buffer.from(message.buffer, message.byteOffset, message.byteLength),
  };
}

/** Returns the query with a message in JSON or binary, and without compression. */
export function writeGetQuery(query: string, message: Buffer): string {
  const parameters = new URLSearchParams(query);
  parameters.delete("compression");
  parameters.set("base64", "1");
  parameters.set("message", message.toString("base64url"));
  return parameters.toString();
}
