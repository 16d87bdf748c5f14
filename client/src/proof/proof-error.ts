/** Why an answer is not believed. */
import { GatehouseError } from "../gatehouse-error.js";

/**
 * What is wrong with an answer:
 * - malformed: it cannot be read, or a part of it has not the length that it must have;
 * - signature: no authority of the network signed the header, or the statement that it is the newest;
 * - network: it is of another network;
 * - rollback: the block is older than one that was seen before;
 * - fork: there are two blocks of one number, both signed (`evidence`);
 * - age: nobody said lately that this block is the newest, or the clock of one of the two is wrong;
 * - path: what it says does not lead to the root in the header;
 * - value: a text is not the one whose hash is proved;
 * - missing: what was asked for is not in it, or something else is;
 * - unprovable: no proof could show it, so it is not asked for.
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

/** A header that an authority signed. */
export interface SignedHeader {
  readonly number: bigint;
  /** 0x and 64 lower-case hex digits. */
  readonly hash: string;
  /** An encoded BlockHeader. */
  readonly header: Uint8Array;
  /** 64 bytes. */
  readonly signature: Uint8Array;
}

/** What is known beside the sentence. */
export interface ProofErrorFacts {
  /** Two headers of one number, each signed by an authority: whoever has them can show that it signed both. */
  readonly evidence?: readonly [SignedHeader, SignedHeader] | undefined;
  readonly cause?: unknown;
}

/** An answer that is not believed, or a call whose answer could not be. Its `reason` is UNPROVED. */
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
