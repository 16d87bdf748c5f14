/** Inputs and findings of the model. */

/** Kinds of errors, in the order of the table. */
export const columns = ["lost", "doubled", "torn", "out of order", "stuck", "served wrong", "crashed"] as const;

export type Column = (typeof columns)[number];

/** Explanations of the kinds of errors, for the report. */
export const meanings: Readonly<Record<Column, string>> = {
  lost:
    "acknowledged, and neither in a block, nor rejected for a reason that holds, nor waiting; or told to be in a block, " +
    "and in none; or a head that went back",
  doubled: "a transaction in two blocks, or two blocks of one number, from whichever node and whenever they were seen",
  torn: "a block without its effects, or effects without their block; nodes of one head whose states differ",
  "out of order": "of one sender and given to one node in their order, and rejected since a later one was in a block",
  stuck:
    "the network did not come to rest: all heads equal, all nodes accepting, nothing waiting; and who was behind did not go on",
  "served wrong": "an answer that is contradicted by what was acknowledged, or by blocks that the node had",
  crashed: "a process that ended by itself, or did not end well when it was asked to",
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
