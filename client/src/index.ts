/** Exports of the package. */
export { createGatehouse, type Gatehouse, type GatehouseOptions } from "./gatehouse.js";
export { type ClientReason, type FailureReason, GatehouseError, type NodeReason } from "./gatehouse-error.js";
export { identityHeaders, type IdentityHeaders } from "./identity.js";
export {
  type Access,
  type AccessGroup,
  type AccessMode,
  type AccessRule,
  addCommitment,
  appendItem,
  type CircomProof,
  createProgram,
  deleteField,
  deleteItem,
  deleteProgram,
  type Json,
  jsonText,
  type JsonText,
  type NewProgram,
  type NullifierSpend,
  type ProgramContent,
  type ProgramCreation,
  setField,
  setItem,
  spendNullifier,
  updateAccess,
  writeProgram,
} from "./operations.js";
export { checkBlock, type CheckedBlock } from "./proof/blocks.js";
export {
  checkProof,
  type ProofQuestion,
  type ProvedCommitments,
  type ProvedNullifier,
  type ProvedSender,
  type ProvedState,
  questionOf,
} from "./proof/check.js";
export { checkHeader, type CheckedHeader, checkSignedHead } from "./proof/headers.js";
export { type VerifyEd25519 } from "./proof/hashing.js";
export { readProofJson } from "./proof/json.js";
export { type ProofTrust, type ProvedBlock } from "./proof/moment.js";
export { type ProofNetwork, readProofNetwork } from "./proof/network.js";
export { type ProvedProgram, type ProvedProgramState } from "./proof/program.js";
export { ProofError, type ProofErrorFacts, type ProofFlaw, type SignedHeader } from "./proof/proof-error.js";
export { answerProved, isProvable } from "./proof/reads.js";
export { createProofSession, type ProofSession, type VerifyOptions } from "./proof/session.js";
export { type AskNode, type HashPair, type ProofSource } from "./proof/source.js";
export { type RetryPolicy } from "./retry.js";
export { keyFromPem, keyFromSeed } from "./keys.js";
export type { Signer } from "./signer.js";
export { type CallOptions, type Submitted, type SubmitOptions } from "./submit.js";
export {
  type Operation,
  programAddress,
  type SignedTransaction,
  signTransaction,
  type TransactionContent,
} from "./transaction.js";
export { type Included } from "./wait-for.js";
export { type EventsRequest } from "./watch.js";
