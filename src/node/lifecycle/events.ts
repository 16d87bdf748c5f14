/** What the parts of a node tell each other, whichever of them is made first. */
import type { Bus } from "./bus.js";
import type { HistoryPoint } from "../../metrics/history.js";

/** Events by name. */
export interface NodeEvents {
  /** The chain has a new block, and it is in the database. Told by the chain. */
  readonly blockApplied: { readonly number: bigint };
  /**
   * A node that only reads has found another newest block; not by following the blocks in between, where it leapt. Told by
   * the chain.
   */
  readonly headFound: { readonly isLeap: boolean };
  /** The process that this one belongs to has another newest block. Told by the link to it. */
  readonly blockTold: undefined;
  /** A transaction was turned away for good, and why. Told by the mempool. */
  readonly transactionRejected: { readonly hash: string; readonly reason: string };
  /** An authority said anew that the newest block is its newest one. Told by what hears of such words. */
  readonly headStated: undefined;
  /** The database takes no more writes (the engine's code, or a word for it), or does again (undefined). Told by the chain. */
  readonly writesChanged: { readonly trouble: string | undefined };
  /** What is told of all that the database holds and that is not what was stored; undefined when all is right again. */
  readonly damageChanged: { readonly sentence: string | undefined };
  /** The consensus beside this node told how it is; what is wrong, if it failed. Told by the control. */
  readonly consensusReported: { readonly isReady: boolean; readonly failure: string | undefined };
  /** A peer proved who it is. Told by the network. */
  readonly peerVerified: { readonly endpoint: string };
  /** Another point of the day behind the node. Told by the history. */
  readonly historyTaken: HistoryPoint;
  /** The operator wants files that may change to be read again. Told by whoever started the node. */
  readonly reloadAsked: undefined;
}

/** The bus of a node. */
export type NodeBus = Bus<NodeEvents>;
