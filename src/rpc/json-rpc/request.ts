/** A JSON-RPC request on its way, and the answers that need no method. */
import { createJSONRPCErrorResponse, isJSONRPCID, JSONRPC, type JSONRPCRequest } from "json-rpc-2.0";
import type { RpcError } from "../errors.js";
import type { Arrival, Permit } from "../gate.js";
import type { Call } from "../service.js";

/** A request that came in and was let in. */
export interface JsonRpcRequest {
  readonly body: string;
  readonly arrival: Arrival;
  readonly lease: Permit;
  readonly call: Call;
  /** Set when it failed, in whatever shape the caller is told of it. */
  failure?: RpcError;
}

/**
 * Takes parameters, named or by position, and gives the JSON text of the answer to the caller of a request. Throws what the
 * method throws, and Failure INVALID_SIGNATURE.
 */
export type RunForCaller = (params: unknown, given: JsonRpcRequest) => Promise<string>;

/** Code of failures that have none of their own; the error's data tells the reason of all. */
export const serverError = -32_000;

/** An error response, as JSON text. */
export function writeFailure(code: number, message: string, id: RequestId = null, data?: object): string {
  return JSON.stringify(createJSONRPCErrorResponse(id, code, message, data));
}

/** What a request is answered by; null where it says nothing that could be one. */
export type RequestId = string | number | null;

/** Whether this is a request of JSON-RPC 2.0: its method is a string, and its id, if any, of one of the three kinds. */
export function isRequest(request: unknown): request is JSONRPCRequest {
  const { jsonrpc, method, id } = asObject(request);
  return jsonrpc === JSONRPC && typeof method === "string" && (id === undefined || isJSONRPCID(id));
}

/** The id to answer a request by; undefined where it is a notification, which gets no answer. */
export function idOf(request: unknown): RequestId | undefined {
  const { id } = asObject(request);
  if (id === undefined) {
    return isRequest(request) ? undefined : null;
  }
  return isJSONRPCID(id) ? id : null;
}

function asObject(request: unknown): { readonly jsonrpc?: unknown; readonly method?: unknown; readonly id?: unknown } {
  return typeof request === "object" && request !== null ? request : {};
}
