/** Error of a response that fails verification. */
import { GatehouseError } from "../gatehouse-error.js";

/**
 * Flaw of a response:
 * - malformed: it cannot be decoded, or a part has the wrong length;
 * - signature: no authority of the network signed the header, or the statement that it is the latest; or a sender did
 *   not sign its transaction;
 * - network: it belongs to another network;
 * - rollback: the block is older than one that was seen before;
 * - fork: two different signed blocks have the same number (`evidence`);
 * - age: no recent statement says that this block is the latest, or one of the two clocks is wrong;
 * - path: its value does not lead to the root in the header;
 * - value: a text does not have the proven hash;
 * - missing: a requested item is missing, or another one is returned;
 * - unprovable: no proof exists for this read, so the client does not request it.
 */
export type ProofFlaw =
  | "malformed"
  | "signature"
  | "network"
  | "rollback"
  | "fork"
  | "age"
  | "path"
  | "value"
  | "missing"
  | "unprovable";

/** Header that an authority signed. */
export interface SignedHeader {
  readonly number: bigint;
  /** Hash as 0x and 64 lower-case hex digits. */
  readonly hash: string;
  /** Encoded BlockHeader. */
  readonly header: Uint8Array;
  /** Signature of 64 bytes. */
  readonly signature: Uint8Array;
}

/** Details of the error, in addition to the message. */
export interface ProofErrorFacts {
  /**
   * Two headers with the same number, each signed by an authority. They prove a fork (equivocation) to third parties.
   */
  readonly evidence?: readonly [SignedHeader, SignedHeader] | undefined;
  /** True if the message quotes an unproved error of the node. Default: false. */
  readonly fromNode?: boolean | undefined;
  readonly cause?: unknown;
}

/** Error of a response that failed verification, or of a call that cannot be verified. Its `reason` is UNPROVED. */
export class ProofError extends GatehouseError {
  override readonly name: string = "ProofError";
  readonly flaw: ProofFlaw;
  readonly evidence: readonly [SignedHeader, SignedHeader] | undefined;

  constructor(flaw: ProofFlaw, message: string, { evidence, ...facts }: ProofErrorFacts = {}) {
    super(message, "UNPROVED", facts);
    this.flaw = flaw;
    this.evidence = evidence;
  }
}
