/** JSON-RPC requests, and the responses that need no method. */
import { createJSONRPCErrorResponse, isJSONRPCID, type JSONRPCID, type JSONRPCRequest } from "json-rpc-2.0";
import type { RpcError } from "../errors.js";
import type { Arrival, Permit } from "../gate.js";
import type { Call } from "../service.js";

/** Default code of errors. The error's data contains the reason, for every code. */
export const serverError = -32_000;

export interface JsonRpcRequest {
  readonly body: string;
  readonly arrival: Arrival;
  readonly permit: Permit;
  readonly call: Call;
  /** Error of the request, recorded as its outcome in every response format. */
  failure?: RpcError;
}

export function errorText(code: number, message: string, id: JSONRPCID = null, data?: object): string {
  return JSON.stringify(createJSONRPCErrorResponse(id, code, message, data));
}

/**
 * Returns true for a JSON-RPC 2.0 request: its method is a string, and its ID, if present, is a string, number or null.
 */
export function isRequest(request: unknown): request is JSONRPCRequest {
  const { jsonrpc, method, id } = asObject(request);
  return jsonrpc === "2.0" && typeof method === "string" && (id === undefined || isJSONRPCID(id));
}

/** Returns the ID for the response to a request; undefined for a notification, which gets no response. */
export function idOf(request: unknown): JSONRPCID | undefined {
  const { id } = asObject(request);
  if (id === undefined) {
    return isRequest(request) ? undefined : null;
  }
  return isJSONRPCID(id) ? id : null;
}

/** Returns the members of a request; none of a request that is no object. */
export function asObject(request: unknown): {
  readonly jsonrpc?: unknown;
  readonly method?: unknown;
  readonly id?: unknown;
} {
  return typeof request === "object" && request !== null ? request : {};
}
