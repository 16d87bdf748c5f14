/** What the package exports. */
export { createGatehouse, type Gatehouse, type GatehouseOptions } from "./gatehouse.js";
export { type ClientReason, type FailureReason, GatehouseError, type NodeReason } from "./errors.js";
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
