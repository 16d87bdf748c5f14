/** Batches of JSON-RPC 2.0. Requests run one after the other, and each passes the gate like a separate request. */
import { createFairTurns } from "../../base/async/fair-scheduler.js";
import type { Json } from "../../base/text/parse-json.js";
import { maxListBytes } from "../../base/limits/response-limits.js";
import type { RpcError } from "../errors.js";
import type { Gate, Permit } from "../gate.js";
import { errorText, idOf, invalidRequest, type JsonRpcRequest, serverError } from "./request.js";

const maxBatch = 100;
/** Time for which the requests of a batch run before they wait for a turn, in milliseconds. */
const turnMs = 2;
const turn = createFairTurns(1);
/**
 * Responses up to this size, in bytes, are never dropped, because they may confirm a change. A batch of 100 such
 * responses fits besides a full list.
 */
const shortBytes = 512;

interface BatchDeps {
  readonly gate: Gate;
  /** Handles one request; undefined for a notification. */
  readonly receive: (request: Json, admitted: JsonRpcRequest) => Promise<string | undefined>;
}

/**
 * Handles a batch, up to the size of one response. The first response is always included. A response that no longer
 * fits is replaced by an error, and further requests are not processed. Returns undefined for a batch of notifications
 * only.
 */
export async function receiveBatch(
  requests: readonly Json[],
  admitted: JsonRpcRequest,
  deps: BatchDeps,
): Promise<string | undefined> {
  if (requests.length === 0 || requests.length > maxBatch) {
    return rejectBatch(requests);
  }
  const responses: string[] = [];
  let bytes = 0;
  let sinceMs = performance.now();
  for (const [i, request] of requests.entries()) {
    // What caches hold is read without any wait.
    if (performance.now() - sinceMs > turnMs) {
      await turn(admitted.call.caller.address);
      sinceMs = performance.now();
    }
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

/**
 * Rejects all requests of a batch, each with its ID, because clients find their requests by ID. A client that sends too
 * many IDs for one response gets one error without an ID, as does an empty batch.
 */
function rejectBatch(requests: readonly Json[]): string {
  const message = `A batch must have 1 to ${maxBatch} requests, not ${requests.length}; send them in several batches.`;
  const responses: string[] = [];
  let bytes = 0;
  for (const request of requests) {
    const id = idOf(request);
    if (id !== undefined) {
      const text = errorText(invalidRequest, message, id, { reason: "INVALID_REQUEST" });
      bytes += Buffer.byteLength(text) + 1;
      responses.push(text);
    }
    if (bytes > maxListBytes) {
      return errorText(invalidRequest, message);
    }
  }
  return responses.length === 0 ? errorText(invalidRequest, message) : `[${responses.join(",")}]`;
}

/** Handles a request with its own permit. The permit of the batch covers the first request. */
async function receiveAdmitted(
  request: Json,
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

function rejectTooLarge(request: Json): string[] {
  const message = "The responses to this batch reached the size limit; send this request in another batch.";
  return rejectRequest(request, message, { reason: "ANSWER_TOO_LARGE" });
}

/** Returns the error response of a request that is not processed; empty for a notification. */
function rejectRequest(request: Json, message: string, data?: object): string[] {
  const id = idOf(request);
  return id === undefined ? [] : [errorText(serverError, message, id, data)];
}
