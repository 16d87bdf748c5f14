/** What the model is told, and what it finds. */

/** What can be wrong, in the order of the table. */
export const columns = ["lost", "doubled", "torn", "out of order", "stuck", "served wrong", "crashed"] as const;

/** One of them. */
export type Column = (typeof columns)[number];

/** What each of them means. */
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

/** Something that is wrong. */
export interface Finding {
  readonly column: Column;
  readonly sentence: string;
  /** The round in which it was found; 0 before the first. */
  readonly round: number;
}

/** What a transaction changes. */
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

/** A document of a program. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** A transaction that is sent. */
export interface SentTransaction {
  readonly hash: string;
  readonly sender: string;
  readonly nonce: number;
  readonly expiresMs: number;
  readonly change: Change;
}

/**
 * What came of handing it in: taken; refused for good, or for now, which a node says also of what it has stored and does
 * not know of; or nobody knows, since there was no answer.
 */
export type Answer = "taken" | "refused" | "refused for now" | "unknown";

/** Where a node says that a transaction is. */
export type Fate =
  | { readonly status: "pending" | "not found" }
  | { readonly status: "included"; readonly block: number }
  | { readonly status: "rejected"; readonly reason: string };

/** The newest block of a node. */
export interface Head {
  readonly number: number;
  readonly hash: string;
}

/** A block whose signatures and hashes were found right. */
export interface SeenBlock extends Head {
  readonly previousHash: string;
  /** Hashes of its transactions. */
  readonly transactions: readonly string[];
}

/** When a node was asked: what it had said before, in this life of its database. */
export interface Asked {
  readonly node: number;
  readonly life: number;
  readonly head: number;
}
