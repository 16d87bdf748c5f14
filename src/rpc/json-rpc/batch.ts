/** Batches of JSON-RPC 2.0: their requests are answered one after the other, and each is admitted like any other. */
import { JSONRPCErrorCode } from "json-rpc-2.0";
import type { Failure } from "../errors.js";
import type { Gate, Lease } from "../gate.js";
import { asObject, type JsonRpcRequest, serverError, writeFailure } from "./request.js";

/** Most requests of one batch. */
const maxBatch = 100;
/** A batch whose answers have become longer than this is answered with failures from there on. */
const maxAnswerLength = 16 * 1024 * 1024;

interface BatchParts {
  readonly gate: Gate;
  /** Answers one request; undefined for a notification. */
  readonly receive: (request: unknown, given: JsonRpcRequest) => Promise<string | undefined>;
}

/** Answers a batch; undefined when it holds nothing but notifications. */
export async function receiveBatch(
  requests: readonly unknown[],
  given: JsonRpcRequest,
  parts: BatchParts,
): Promise<string | undefined> {
  if (requests.length === 0 || requests.length > maxBatch) {
    return writeFailure(JSONRPCErrorCode.InvalidRequest, `A batch holds 1 to ${maxBatch} requests.`);
  }
  const answers: string[] = [];
  let length = 0;
  for (const [i, request] of requests.entries()) {
    if (length > maxAnswerLength) {
      answers.push(...refuse(request, "The answers to this batch are too long; ask for fewer at once."));
      continue;
    }
    const text = await (i === 0 ? parts.receive(request, given) : receiveCounted(request, given, parts));
    if (text !== undefined) {
      answers.push(text);
      length += text.length;
    }
  }
  return answers.length === 0 ? undefined : `[${answers.join(",")}]`;
}

/** Each request of a batch counts as one; the first was counted when the batch came. */
async function receiveCounted(
  request: unknown,
  given: JsonRpcRequest,
  { gate, receive }: BatchParts,
): Promise<string | undefined> {
  let lease: Lease;
  try {
    lease = gate.admit(given.arrival, "json-rpc", undefined);
  } catch (error) {
    const { reason, message, retryAfterS } = error as Failure;
    return refuse(request, message, { reason, retryAfter: retryAfterS })[0];
  }
  const { body, arrival, call } = given;
  const counted: JsonRpcRequest = { body, arrival, call, lease };
  try {
    return await receive(request, counted);
  } finally {
    lease.settle(counted.failure);
    lease.end();
  }
}

/** The answer to a request that is not looked at; none to a notification. */
function refuse(request: unknown, message: string, data?: object): string[] {
  const { id } = asObject(request) as { readonly id?: string | number | null };
  return id === undefined ? [] : [writeFailure(serverError, message, id, data)];
}
