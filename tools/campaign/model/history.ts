/** Inputs and findings of the model. */

/** Kinds of errors, in the order of the table. */
export const columns = ["lost", "doubled", "torn", "out of order", "stuck", "served wrong", "crashed"] as const;

export type Column = (typeof columns)[number];

/** Explanations of the kinds of errors, for the report. */
export const meanings: Readonly<Record<Column, string>> = {
  lost:
    "an acknowledged transaction is neither in a block, nor rejected for a valid reason, nor pending; a node named a " +
    "block that does not have it; or a node's head went back",
  doubled: "a transaction is in two blocks, or two blocks have one number, on any nodes at any time",
  torn: "a block without its effects, effects without their block, or nodes with equal heads and different state",
  "out of order":
    "a sender's transactions went to one node in order, and one was rejected because a later one was in a block",
  stuck:
    "the network is not at rest (equal heads, all nodes accepting, nothing pending), and the node that is behind makes no progress",
  "served wrong": "a response contradicts an acknowledgment, or a block that the node had",
  crashed: "a process ended by itself, or not with code 0 when it was stopped",
};

/** Error that the campaign found. */
export interface Finding {
  readonly column: Column;
  readonly sentence: string;
  /** Round in which the error was found; 0 before the first. */
  readonly round: number;
}

/** Change by a transaction. */
export type Change =
  | { readonly kind: "create"; readonly address: string; readonly document: JsonObject }
  | { readonly kind: "set"; readonly address: string; readonly field: string; readonly value: unknown }
  | { readonly kind: "append"; readonly address: string; readonly field: string; readonly value: unknown }
  | {
      readonly kind: "set item";
      readonly address: string;
      readonly field: string;
      readonly index: number;
      readonly value: unknown;
    }
  | { readonly kind: "delete item"; readonly address: string; readonly field: string; readonly index: number }
  | { readonly kind: "delete field"; readonly address: string; readonly field: string }
  | { readonly kind: "delete"; readonly address: string }
  | { readonly kind: "commit"; readonly commitment: string };

/** Document of a program. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Transaction that is submitted. */
export interface SentTransaction {
  readonly hash: string;
  readonly sender: string;
  readonly nonce: number;
  readonly expiresMs: number;
  readonly change: Change;
}

/**
 * Outcome of a submission:
 * - taken: the node acknowledged the transaction.
 * - refused: the node rejected the transaction for good.
 * - refused for now: a transient error; the node may have stored the transaction all the same.
 * - unknown: there was no response.
 */
export type SubmitOutcome = "taken" | "refused" | "refused for now" | "unknown";

/** Status of a transaction as a node reports it. */
export type ReportedStatus =
  | { readonly status: "pending" | "not found" }
  | { readonly status: "included"; readonly block: number }
  | { readonly status: "rejected"; readonly reason: string };

/** Latest block of a node. */
export interface Head {
  readonly number: number;
  readonly hash: string;
}

/** Block whose signatures and hashes are valid. */
export interface VerifiedBlock extends Head {
  readonly previousHash: string;
  /** Hashes of the transactions. */
  readonly transactions: readonly string[];
}

/** State of a node before a read: the head that it had reported, and the generation of its database. */
export interface ReadContext {
  readonly node: number;
  readonly generation: number;
  readonly head: number;
}
