/** Source of verified reads. */
import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { showText } from "../../../src/base/text/show-text.js";
import { noBlockYet } from "../../../src/chain/blocks/block-rejections.js";
import { codeOf } from "../errors.js";
import { type FailureReason, GatehouseError, type NodeReason } from "../gatehouse-error.js";
import type { ProofQuestion, ProvedState } from "./check.js";
import type { VerifyEd25519 } from "./hashing.js";
import type { ProofNetwork } from "./network.js";
import { ProofError, type SignedHeader } from "./proof-error.js";

/** Calls a node. The response is untrusted. */
export type AskNode = <I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
) => Promise<MessageShape<O>>;

/** Hashes two nodes of the commitment tree: Poseidon with circomlib's parameters over BN254. */
export type HashPair = (left: bigint, right: bigint) => bigint;

/** Calls and checks that verified reads use. */
export interface ProofSource {
  /** Requests a proof and verifies it. Rejects with ProofError. */
  readonly prove: (question: ProofQuestion) => Promise<ProvedState>;
  readonly network: () => Promise<ProofNetwork>;
  /** Latest block that was proven; undefined if there is none. */
  readonly seen?: SignedHeader | undefined;
  /** Calls the node without a proof, for responses that prove themselves, such as blocks. */
  readonly ask: AskNode;
  /** Undefined if none was configured; paths in the commitment tree are then unprovable. */
  readonly hashPair: HashPair | undefined;
  /** Verifies signatures of senders; undefined for the default, in JavaScript. */
  readonly verifyEd25519?: VerifyEd25519 | undefined;
}

/** Reasons that a proof shows: something does not exist, or has another type. */
export const absenceReasons: ReadonlySet<FailureReason> = new Set<FailureReason>([
  "NOT_FOUND",
  "FIELD_NOT_FOUND",
  "INVALID_FIELD_TYPE",
  "INDEX_OUT_OF_BOUNDS",
]);

/** Creates a proven error, with the reason and message that the node returns in the same case. */
export function provenError([reason, message]: readonly [NodeReason, string]): GatehouseError {
  return new GatehouseError(message, reason, { code: codeOf(reason) });
}

/**
 * Runs a read of a block, or of the state after it. If the node responds that there is no such block, the number of the
 * latest block decides.
 *
 * @throws GatehouseError NOT_FOUND, which is proven, if the latest block has a lower number; errors of the read.
 */
export async function readExisting<T>(number: bigint, { prove }: ProofSource, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    const isMissing = error instanceof GatehouseError && error.fromNode && error.reason === "NOT_FOUND";
    throw isMissing && number > (await prove({})).block.number ? provenError(noBlockYet) : error;
  }
}

/** Creates the error for a read that cannot be proven. */
export function unprovable(subject: string): ProofError {
  return new ProofError("unprovable", `${subject} cannot be proven, and this client accepts only proven responses.`);
}

/** Creates the error for a text with the wrong form, with the message that the node returns in the same case. */
export function wrongForm(name: string, form: string, text: string): GatehouseError {
  return provenError(["INVALID_REQUEST", `${name} must be ${form}, not ${showText(text)}.`]);
}
