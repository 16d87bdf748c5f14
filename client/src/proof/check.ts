/** Verifies proofs of state with only the genesis. docs/proofs.md is the definition. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type CommitmentsProof,
  type GetProofRequest,
  GetProofRequestSchema,
  type GetProofResponse,
  type NullifierProof,
  type SenderProof,
} from "../../../gen/gatehouse/state/v1/state_pb.js";
import { toHash, toPublicKey } from "../../../src/base/crypto/parse-hash.js";
import { latestBlock } from "../../../src/base/latest-block.js";
import { hex32 } from "../../../src/base/crypto/signing-payloads.js";
import { bytesOf, require32Bytes, stateHashes } from "./hashing.js";
import { checkResponseBlock, type ProofTrust, type ProvedBlock } from "./moment.js";
import { checkPath } from "./paths.js";
import { checkProgram, requirePast, type ProvedProgram } from "./program.js";
import { ProofError } from "./proof-error.js";

/** Proof request, as an object literal. */
export type ProofQuestion = MessageInitShape<typeof GetProofRequestSchema>;

/** Proven state of all requested items. */
export interface ProvedState {
  readonly block: ProvedBlock;
  /** Undefined if not requested. */
  readonly program: ProvedProgram | undefined;
  /** Nullifiers in the order of the request. */
  readonly nullifiers: readonly ProvedNullifier[];
  /** Senders in the order of the request. */
  readonly senders: readonly ProvedSender[];
  /** Undefined if not requested. */
  readonly commitments: ProvedCommitments | undefined;
}

/** Proven nullifier; `use` is undefined if it is unspent. */
export interface ProvedNullifier {
  /** Hash as 0x and 64 lower-case hex digits. */
  readonly nullifierHash: string;
  readonly use: { readonly blockNumber: bigint; readonly transactionHash: string } | undefined;
}

export interface ProvedSender {
  /** Public key as 0x and 64 lower-case hex digits. */
  readonly address: string;
  /** Nonce; 0 if nothing was sent. Undefined if it has changed since the requested block. */
  readonly nonce: bigint | undefined;
}

/** Proven commitment tree: empty, its root, or only its hash if it has changed since the requested block. */
export type ProvedCommitments =
  | { readonly kind: "empty" }
  | { readonly kind: "tree"; readonly root: string; readonly leafCount: number }
  | { readonly kind: "changed"; readonly valueHash: Uint8Array };

/**
 * Verifies a response in this order: header, network, number, age, paths, values.
 *
 * @param question the proof request; a response to another request proves nothing.
 * @throws ProofError with the first flaw found.
 */
export function checkProof(question: ProofQuestion, response: GetProofResponse, trust: ProofTrust): ProvedState {
  const request = toRequest(question);
  const block = checkResponseBlock(request, response, trust);
  return { block, ...checkState(request, response, block.stateRoot) };
}

/** Returns the request without the number that stands for the latest block, which is the default. */
export function toRequest(question: ProofQuestion): GetProofRequest {
  const block = question.block === latestBlock ? undefined : question.block;
  return create(GetProofRequestSchema, { ...question, block });
}

/** Verifies paths and values under a root. Throws ProofError path, value, missing or malformed. */
export function checkState(
  request: GetProofRequest,
  response: GetProofResponse,
  root: Uint8Array,
): Omit<ProvedState, "block"> {
  return {
    program: checkProgram(request, response.program, root),
    nullifiers: checkEach(request.nullifiers, response.nullifiers, "nullifiers", (text, proof) =>
      checkNullifier(text, proof, root),
    ),
    senders: checkEach(request.senders, response.senders, "senders", (text, proof) =>
      checkSender(request, text, proof, root),
    ),
    commitments: request.withCommitments ? checkCommitments(request, response.commitments, root) : undefined,
  };
}

/** Returns the proof request that fits a response, for responses that were stored without their request. */
export function questionOf({ program, nullifiers, senders, commitments }: GetProofResponse): GetProofRequest {
  const state = program?.state.case === "program" ? program.state.value : undefined;
  return create(GetProofRequestSchema, {
    storageAddress: program?.storageAddress,
    fields: state?.document.case === "object" ? state.document.value.fields.map(({ name }) => name) : [],
    withDocument: state?.data !== undefined,
    withMetadata: state?.metadata !== undefined,
    nullifiers: nullifiers.map(({ nullifierHash }) => nullifierHash),
    senders: senders.map(({ address }) => address),
    withCommitments: commitments !== undefined,
  });
}

function checkEach<Proof, Proved>(
  requested: readonly string[],
  proofs: readonly Proof[],
  subject: string,
  check: (text: string, proof: Proof) => Proved,
): Proved[] {
  if (requested.length !== proofs.length) {
    throw new ProofError(
      "missing",
      `The response proves ${proofs.length} ${subject}, not the requested ${requested.length}.`,
    );
  }
  return requested.map((text, i) => check(text, proofs[i]!));
}

function checkNullifier(text: string, proof: NullifierProof, root: Uint8Array): ProvedNullifier {
  const nullifierHash = toHash(text);
  const { path, blockNumber, transactionHash } = proof;
  if (nullifierHash === undefined || proof.nullifierHash !== nullifierHash) {
    throw new ProofError("missing", `The response does not prove the nullifier ${text}, which the request names.`);
  }
  const use = blockNumber === undefined || transactionHash === undefined ? undefined : { blockNumber, transactionHash };
  const isComplete = (blockNumber === undefined) === (transactionHash === undefined);
  if (!isComplete || (use !== undefined && !hex32.test(use.transactionHash))) {
    throw new ProofError("malformed", "The response does not say where the nullifier was spent.");
  }
  const valueHash = use && stateHashes.nullifier(use.blockNumber, bytesOf(use.transactionHash));
  const key = stateHashes.nullifierKey(bytesOf(nullifierHash));
  checkPath(path, { root, key, valueHash }, `the use of the nullifier ${nullifierHash}`);
  return { nullifierHash, use };
}

function checkSender(request: GetProofRequest, text: string, proof: SenderProof, root: Uint8Array): ProvedSender {
  const address = toPublicKey(text);
  if (address === undefined || proof.address !== address) {
    throw new ProofError("missing", `The response does not prove the sender ${text}, which the request names.`);
  }
  const { path, state } = proof;
  const valueHash =
    state.case === undefined ? undefined : state.case === "nonce" ? stateHashes.sender(state.value) : state.value;
  const subject = `the nonce of the sender ${address}`;
  checkPath(path, { root, key: stateHashes.senderKey(bytesOf(address)), valueHash }, subject);
  if (state.case === "valueHash") {
    requirePast(request, subject);
    return { address, nonce: undefined };
  }
  return { address, nonce: state.value ?? 0n };
}

function checkCommitments(
  request: GetProofRequest,
  proof: CommitmentsProof | undefined,
  root: Uint8Array,
): ProvedCommitments {
  const subject = "the commitment tree";
  const state = proof?.state;
  if (state?.case === "tree" && !hex32.test(state.value.root)) {
    throw new ProofError("malformed", "The response has no root of the commitment tree.");
  }
  const valueHash =
    state?.case === "tree"
      ? stateHashes.commitments(bytesOf(state.value.root), state.value.leafCount)
      : state?.case === "valueHash"
        ? require32Bytes(state.value, "The hash of the commitment tree")
        : undefined;
  checkPath(proof?.path, { root, key: stateHashes.commitmentsKey(), valueHash }, subject);
  switch (state?.case) {
    case "tree":
      return { kind: "tree", root: state.value.root, leafCount: state.value.leafCount };
    case "valueHash":
      requirePast(request, subject);
      return { kind: "changed", valueHash: state.value };
    default:
      return { kind: "empty" };
  }
}
