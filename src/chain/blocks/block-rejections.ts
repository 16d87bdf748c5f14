/**
 * Reasons and messages of rejected reads of blocks. Shared by the node and by clients that verify responses, so this
 * module does not depend on Node.js.
 */

/** Reason and message of a rejection: the arguments of an RpcError. */
type RejectionArgs = readonly ["NOT_FOUND", string];

export const noBlockYet: RejectionArgs = ["NOT_FOUND", "There is no such block yet."];
export const blockZero: RejectionArgs = ["NOT_FOUND", "Block 0 is the genesis: GET /genesis."];
