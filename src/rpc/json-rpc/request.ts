/** JSON-RPC requests, and the responses that need no method. */
import { isJsonObject, type Json, type JsonMembers, JsonNumber } from "../../base/text/parse-json.js";
import type { RpcError } from "../errors.js";
import type { Arrival, Permit } from "../gate.js";
import type { Call } from "../service.js";

/** Codes of JSON-RPC 2.0. */
export const parseError = -32_700;
export const invalidRequest = -32_600;
export const methodNotFound = -32_601;
/** Default code of errors. The error's data contains the reason, for every code. */
export const serverError = -32_000;

export interface JsonRpcRequest {
  readonly body: Uint8Array;
  readonly arrival: Arrival;
  readonly permit: Permit;
  readonly call: Call;
  /** Error of the request, recorded as its outcome in every response format. */
  failure?: RpcError;
}

/** JSON text of an ID, exactly as in the request. */
export type IdText = string;

export function errorText(code: number, message: string, id: IdText = "null", data?: object): string {
  return `{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify({ code, message, data })}}`;
}

/**
 * Returns true for a JSON-RPC 2.0 request: its method is a string, and its ID, if present, is a string, number or null.
 */
export function isRequest(request: Json): request is JsonMembers & { readonly method: string } {
  const { jsonrpc, method, id } = membersOf(request);
  return jsonrpc === "2.0" && typeof method === "string" && (id === undefined || textOf(id) !== undefined);
}

/** Returns the ID for the response to a request; undefined for a notification, which gets no response. */
export function idOf(request: Json): IdText | undefined {
  const { id } = membersOf(request);
  return id === undefined ? (isRequest(request) ? undefined : "null") : (textOf(id) ?? "null");
}

function textOf(id: Json): IdText | undefined {
  if (id instanceof JsonNumber) {
    return id.text;
  }
  return id === null || typeof id === "string" || typeof id === "number" ? JSON.stringify(id) : undefined;
}

/** Returns the members of a request; none of a request that is no object. */
export function membersOf(request: Json): Partial<JsonMembers> {
  return isJsonObject(request) ? request : {};
}
