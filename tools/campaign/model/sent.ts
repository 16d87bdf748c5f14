/** A transaction that was sent, and what was said about it. */
import type { Answer, SentTransaction } from "./history.js";

/** One time that it was handed in. */
export interface Attempt {
  readonly node: number;
  /** Of the node's database. */
  readonly life: number;
  /** When it was handed in, in events; and when it was answered, Infinity before. */
  readonly atEvent: number;
  answeredAtEvent: number;
  answer: Answer;
}

/** All that is known of it. */
export interface Sent extends SentTransaction {
  readonly attempts: Attempt[];
  /** The block that has it. */
  includedIn?: number;
  /** The block in which a node said that it is. */
  toldIn?: number;
  /** What a node said was the reason for its rejection, and which. */
  rejection?: { readonly reason: string; readonly node: number };
  /** Nothing more can come of it. */
  isSettled: boolean;
}

/** Whether some node said that it took it, in a database that it still has. */
export function wasTaken(sent: Sent, lifeOf: (node: number) => number): boolean {
  return sent.attempts.some(({ answer, node, life }) => answer === "taken" && life === lifeOf(node));
}

/**
 * Whether a transaction was overtaken by a later one of its sender through the fault of nodes: each node to which the
 * later one was handed in had acknowledged this one before.
 *
 * @param later - Transactions of the same sender with a higher nonce that are in blocks.
 */
export function wasOvertaken(sent: Sent, later: readonly Sent[]): boolean {
  const knewBefore = ({ node, life, atEvent }: Attempt): boolean =>
    sent.attempts.some(
      (mine) => mine.node === node && mine.life === life && mine.answer === "taken" && mine.answeredAtEvent < atEvent,
    );
  const mayHaveGone = ({ answer }: Attempt): boolean => answer !== "refused";
  return later.length > 0 && later.every(({ attempts }) => attempts.filter(mayHaveGone).every(knewBefore));
}
