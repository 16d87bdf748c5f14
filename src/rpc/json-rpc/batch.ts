/** Batches of JSON-RPC 2.0. Requests run one after the other, and each passes the gate like a separate request. */
import { JSONRPCErrorCode } from "json-rpc-2.0";
import { maxListBytes } from "../../base/limits/response-limits.js";
import type { RpcError } from "../errors.js";
import type { Gate, Permit } from "../gate.js";
import { errorText, idOf, type JsonRpcRequest, serverError } from "./request.js";

const maxBatch = 100;
/**
 * Responses up to this size, in bytes, are never dropped, because they may confirm a change. A batch of 100 such
 * responses fits besides a full list.
 */
const shortBytes = 512;

interface BatchDeps {
  readonly gate: Gate;
  /** Handles one request; undefined for a notification. */
  readonly receive: (request: unknown, admitted: JsonRpcRequest) => Promise<string | undefined>;
}

/**
 * Handles a batch, up to the size of one response. The first response is always included. A response that no longer
 * fits is replaced by an error, and further requests are not processed. Returns undefined for a batch of notifications
 * only.
 */
export async function receiveBatch(
  requests: readonly unknown[],
  admitted: JsonRpcRequest,
  deps: BatchDeps,
): Promise<string | undefined> {
  if (requests.length === 0 || requests.length > maxBatch) {
    return errorText(JSONRPCErrorCode.InvalidRequest, `A batch must have 1 to ${maxBatch} requests.`);
  }
  const responses: string[] = [];
  let bytes = 0;
  for (const [i, request] of requests.entries()) {
    if (bytes > maxListBytes) {
      responses.push(...rejectTooLarge(request));
      continue;
    }
    const text = await (i === 0 ? deps.receive(request, admitted) : receiveAdmitted(request, admitted, deps));
    if (text !== undefined) {
      const textBytes = Buffer.byteLength(text);
      bytes += textBytes;
      const fits = responses.length === 0 || bytes <= maxListBytes || textBytes <= shortBytes;
      responses.push(...(fits ? [text] : rejectTooLarge(request)));
    }
  }
  return responses.length === 0 ? undefined : `[${responses.join(",")}]`;
}

/** Handles a request with its own permit. The permit of the batch covers the first request. */
async function receiveAdmitted(
  request: unknown,
  admitted: JsonRpcRequest,
  { gate, receive }: BatchDeps,
): Promise<string | undefined> {
  let permit: Permit;
  try {
    permit = gate.admit(admitted.arrival, "json-rpc", undefined);
  } catch (error) {
    const { reason, message, retryAfterS } = error as RpcError;
    return rejectRequest(request, message, { reason, retryAfter: retryAfterS })[0];
  }
  const { body, arrival, call } = admitted;
  const ownRequest: JsonRpcRequest = { body, arrival, call, permit };
  try {
    return await receive(request, ownRequest);
  } finally {
    permit.recordOutcome(ownRequest.failure);
    permit.release();
  }
}

function rejectTooLarge(request: unknown): string[] {
  const message = "The responses to this batch reached the size limit; send this request in another batch.";
  return rejectRequest(request, message, { reason: "ANSWER_TOO_LARGE" });
}

/** Returns the error response of a request that is not processed; empty for a notification. */
function rejectRequest(request: unknown, message: string, data?: object): string[] {
  const id = idOf(request);
  return id === undefined ? [] : [errorText(serverError, message, id, data)];
}
