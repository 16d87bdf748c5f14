/** What is thrown: one class, with the reason of the contract or one of the client's own. It takes no library to load. */
import type { Code } from "@connectrpc/connect";
import type { Reason } from "../../gen/gatehouse/errors/v1/errors_pb.js";

/**
 * Why the node refuses, as the contract lists it (docs/errors.md of the node). UNSPECIFIED: it says nothing of it, or
 * something that is newer than this client.
 */
export type NodeReason = keyof typeof Reason;

/**
 * Why the client has no answer of a node:
 * - UNREACHABLE: nobody answers at the address, the connection was lost, or a proxy answers in the node's place;
 * - REJECTED: the transaction was turned away when a block was made; the message says why;
 * - UNPROVED: the client believes what is proved alone, and the answer is not, or could not be (ProofError says more);
 * - CLOSED: the client was closed before.
 */
export type ClientReason = "UNREACHABLE" | "REJECTED" | "UNPROVED" | "CLOSED";

/** Why something failed. */
export type FailureReason = NodeReason | ClientReason;

/** What is known of a failure. */
export interface FailureFacts {
  readonly code?: keyof typeof Code | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly transactionHash?: string | undefined;
  readonly cause?: unknown;
}

/** A failure. Its message is a sentence for a person: the node's own, where it has answered. */
export class GatehouseError extends Error {
  override readonly name: string = "GatehouseError";
  /** What a program decides by. */
  readonly reason: FailureReason;
  /** Code of gRPC and Connect; undefined where no call failed. */
  readonly code: keyof typeof Code | undefined;
  /** How long the node asks to wait before the same is tried again; undefined where it asks for nothing. */
  readonly retryAfterMs: number | undefined;
  /** The transaction that was handed in, or waited for: whoever got no answer can look for it by this. */
  readonly transactionHash: string | undefined;

  constructor(message: string, reason: FailureReason, facts: FailureFacts = {}) {
    super(message, "cause" in facts ? { cause: facts.cause } : undefined);
    this.reason = reason;
    this.code = facts.code;
    this.retryAfterMs = facts.retryAfterMs;
    this.transactionHash = facts.transactionHash;
  }
}
