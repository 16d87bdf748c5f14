/** Batches of JSON-RPC 2.0: their requests are answered one after the other, and each is admitted like any other. */
import { JSONRPCErrorCode } from "json-rpc-2.0";
import { maxListBytes } from "../../base/limits/response-limits.js";
import type { RpcError } from "../errors.js";
import type { Gate, Permit } from "../gate.js";
import { idOf, type JsonRpcRequest, serverError, writeFailure } from "./request.js";

/** Most requests of one batch. */
const maxBatch = 100;
/** An answer of at most so many bytes is always given: it may tell of what was done. A hundred of them fit beside a list. */
const shortBytes = 512;

interface BatchDeps {
  readonly gate: Gate;
  /** Answers one request; undefined for a notification. */
  readonly receive: (request: unknown, given: JsonRpcRequest) => Promise<string | undefined>;
}

/**
 * Answers a batch, as far as one answer holds it: the first answer always, and refusals from the one on that does not
 * fit any more. Undefined when it holds nothing but notifications.
 */
export async function receiveBatch(
  requests: readonly unknown[],
  given: JsonRpcRequest,
  deps: BatchDeps,
): Promise<string | undefined> {
  if (requests.length === 0 || requests.length > maxBatch) {
    return writeFailure(JSONRPCErrorCode.InvalidRequest, `A batch holds 1 to ${maxBatch} requests.`);
  }
  const answers: string[] = [];
  let bytes = 0;
  for (const [i, request] of requests.entries()) {
    if (bytes > maxListBytes) {
      answers.push(...refuseTooLarge(request));
      continue;
    }
    const text = await (i === 0 ? deps.receive(request, given) : receiveCounted(request, given, deps));
    if (text !== undefined) {
      const textBytes = Buffer.byteLength(text);
      bytes += textBytes;
      const fits = answers.length === 0 || bytes <= maxListBytes || textBytes <= shortBytes;
      answers.push(...(fits ? [text] : refuseTooLarge(request)));
    }
  }
  return answers.length === 0 ? undefined : `[${answers.join(",")}]`;
}

/** Each request of a batch counts as one; the first was counted when the batch came. */
async function receiveCounted(
  request: unknown,
  given: JsonRpcRequest,
  { gate, receive }: BatchDeps,
): Promise<string | undefined> {
  let lease: Permit;
  try {
    lease = gate.admit(given.arrival, "json-rpc", undefined);
  } catch (error) {
    const { reason, message, retryAfterS } = error as RpcError;
    return refuse(request, message, { reason, retryAfter: retryAfterS })[0];
  }
  const { body, arrival, call } = given;
  const counted: JsonRpcRequest = { body, arrival, call, lease };
  try {
    return await receive(request, counted);
  } finally {
    lease.recordOutcome(counted.failure);
    lease.release();
  }
}

function refuseTooLarge(request: unknown): string[] {
  const message = "The answers to this batch are as long as one answer may be; ask for this in another one.";
  return refuse(request, message, { reason: "ANSWER_TOO_LARGE" });
}

/** The answer to a request that is not looked at; none to a notification. */
function refuse(request: unknown, message: string, data?: object): string[] {
  const id = idOf(request);
  return id === undefined ? [] : [writeFailure(serverError, message, id, data)];
}
