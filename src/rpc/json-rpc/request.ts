/** A JSON-RPC request on its way, and the answers that need no method. */
import { createJSONRPCErrorResponse } from "json-rpc-2.0";
import type { Failure } from "../errors.js";
import type { Arrival, Lease } from "../gate.js";
import type { Call } from "../service.js";

/** A request that came in and was let in. */
export interface JsonRpcRequest {
  readonly body: string;
  readonly arrival: Arrival;
  readonly lease: Lease;
  readonly call: Call;
  /** Set when it failed, in whatever shape the caller is told of it. */
  failure?: Failure;
}

/** Code of failures that have none of their own; the error's data tells the reason of all. */
export const serverError = -32_000;

/** An error response, as JSON text. */
export function writeFailure(code: number, message: string, id: string | number | null = null, data?: object): string {
  return JSON.stringify(createJSONRPCErrorResponse(id, code, message, data));
}

/** The library looks into every request; what is no object is no valid request either. */
export function asObject(request: unknown): object {
  return typeof request === "object" && request !== null && !Array.isArray(request) ? request : {};
}
