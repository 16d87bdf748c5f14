/** Where reads that are proved come from. */
import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { showText } from "../../../src/base/text/show-text.js";
import { codeOf } from "../errors.js";
import { GatehouseError, type NodeReason } from "../gatehouse-error.js";
import type { ProofQuestion, ProvedState } from "./check.js";
import type { ProofNetwork } from "./network.js";
import { ProofError } from "./proof-error.js";

/** Calls a node. What it answers is believed by nobody. */
export type AskNode = <I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
) => Promise<MessageShape<O>>;

/** Hash of two nodes of the commitment tree: Poseidon with circomlib's parameters over BN254. */
export type HashPair = (left: bigint, right: bigint) => bigint;

/** What reads are made of. */
export interface ProofSource {
  /** Asks for a proof and checks it. Rejects with ProofError. */
  readonly prove: (question: ProofQuestion) => Promise<ProvedState>;
  readonly network: () => Promise<ProofNetwork>;
  /** For what proves itself, once it is known. */
  readonly ask: AskNode;
  /** Undefined where nobody gave one: then paths in the commitment tree are not proved. */
  readonly hashPair: HashPair | undefined;
}

/** A failure that is proved: what the node says in the same place. */
export function refusal([reason, message]: readonly [NodeReason, string]): GatehouseError {
  return new GatehouseError(message, reason, { code: codeOf(reason) });
}

/** What cannot be proved. */
export function unprovable(what: string): ProofError {
  return new ProofError("unprovable", `${what} cannot be proved, and this client believes nothing else.`);
}

/** Builds the error for a text that does not have the form of its field: what the node says in the same place. */
export function wrongForm(name: string, form: string, text: string): GatehouseError {
  return refusal(["INVALID_REQUEST", `${name} must be ${form}, not ${showText(text)}.`]);
}
