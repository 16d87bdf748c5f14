/** Submitted transaction, with its attempts and the statuses that nodes reported. */
import type { SubmitOutcome, SentTransaction } from "./history.js";

/** Submission of the transaction to one node. */
export interface Attempt {
  readonly node: number;
  /** Generation of the node's database. */
  readonly generation: number;
  /** Sequence number of the submission; `answeredAtEvent` is that of the response, or Infinity before it. */
  readonly atEvent: number;
  answeredAtEvent: number;
  answer: SubmitOutcome;
}

export interface Sent extends SentTransaction {
  readonly attempts: Attempt[];
  /** Block that contains the transaction. */
  includedIn?: number;
  /** Block that contains the transaction according to a node. */
  reportedIn?: number;
  /** Reason for the rejection, and the node that reported it. */
  rejection?: { readonly reason: string; readonly node: number };
  /** True once the outcome is final. */
  isResolved: boolean;
}

/** Returns true if a node acknowledged the transaction, and its database was not emptied since. */
export function wasAccepted(sent: Sent, generationOf: (node: number) => number): boolean {
  return sent.attempts.some(({ answer, node, generation }) => answer === "taken" && generation === generationOf(node));
}

/**
 * Whether a transaction was overtaken by a later one of its sender through the fault of nodes: each node to which the
 * later one was handed in had acknowledged this one before.
 *
 * @param later - Transactions of the same sender with a higher nonce that are in blocks.
 */
export function wasOvertaken(sent: Sent, later: readonly Sent[]): boolean {
  const knewBefore = ({ node, generation, atEvent }: Attempt): boolean =>
    sent.attempts.some(
      (mine) =>
        mine.node === node &&
        mine.generation === generation &&
        mine.answer === "taken" &&
        mine.answeredAtEvent < atEvent,
    );
  const mayHaveGone = ({ answer }: Attempt): boolean => answer !== "refused";
  return later.length > 0 && later.every(({ attempts }) => attempts.filter(mayHaveGone).every(knewBefore));
}
