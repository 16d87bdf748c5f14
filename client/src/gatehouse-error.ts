/** Error class of the client, with a reason of the API or of the client. This module loads no library. */
import type { Code } from "@connectrpc/connect";
import type { Reason } from "../../gen/gatehouse/errors/v1/errors_pb.js";

/**
 * Reason of a node for rejecting a call, as the API lists it (docs/errors.md of the node). UNSPECIFIED: the node sent
 * no reason, or one that is newer than this client.
 */
export type NodeReason = keyof typeof Reason;

/**
 * Reason of the client if there is no usable response:
 * - UNREACHABLE: no node responds at the address, the connection was lost, or a proxy responds instead of the node;
 * - REJECTED: the transaction was rejected during block production; the message says why;
 * - UNPROVED: the client accepts only proven responses, and this one is not or cannot be proven (see ProofError);
 * - CLOSED: the client is closed.
 */
export type ClientReason = "UNREACHABLE" | "REJECTED" | "UNPROVED" | "CLOSED";

/** Reason of an error, from the node or from the client. */
export type FailureReason = NodeReason | ClientReason;

/** Details of an error. */
export interface FailureFacts {
  readonly code?: keyof typeof Code | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly transactionHash?: string | undefined;
  /** Default: false. */
  readonly fromNode?: boolean | undefined;
  readonly cause?: unknown;
}

/** Error of a call. The message is a sentence for people: that of the node, if it has responded. */
export class GatehouseError extends Error {
  override readonly name: string = "GatehouseError";
  /** Reason, for decisions by programs. */
  readonly reason: FailureReason;
  /** Code of gRPC and Connect; undefined if no call failed. */
  readonly code: keyof typeof Code | undefined;
  /** Wait in milliseconds that the node requests before a retry; undefined if it sends none. */
  readonly retryAfterMs: number | undefined;
  /** Hash of the submitted or awaited transaction. Without a response, the caller can find the transaction by it. */
  readonly transactionHash: string | undefined;
  /**
   * True if the error is a statement of whatever responds at the node's address, or the lack of a response: nothing
   * proves it. False if this client established the error, by a proof or from the arguments.
   */
  readonly fromNode: boolean;

  constructor(message: string, reason: FailureReason, facts: FailureFacts = {}) {
    super(message, "cause" in facts ? { cause: facts.cause } : undefined);
    this.reason = reason;
    this.code = facts.code;
    this.retryAfterMs = facts.retryAfterMs;
    this.transactionHash = facts.transactionHash;
    this.fromNode = facts.fromNode ?? false;
  }
}
