/** Hearing of new blocks. How that is done stands here alone. */
import type { HeadAnswer } from "./answers.js";
import type { ExploredNode } from "./node.js";

const everyMs = 2_000;

/**
 * Asks for the newest block again and again, seldom while nobody looks; what has not changed is answered with 304.
 *
 * @param onBlock is told of each that is newer.
 * @param onTrouble is told when no answer comes, and, with undefined, when one comes again.
 */
export function watchBlocks(
  node: Pick<ExploredNode, "ask">,
  signal: AbortSignal,
  onBlock: (number: number) => void,
  onTrouble: (error: unknown) => void,
): void {
  let newest = -1;
  const look = async (): Promise<void> => {
    try {
      const { number } = await node.ask<HeadAnswer>("chain/head", signal);
      onTrouble(undefined);
      if (number > newest) {
        newest = number;
        onBlock(number);
      }
    } catch (error) {
      if (!signal.aborted) {
        onTrouble(error);
      }
    }
    if (!signal.aborted) {
      setTimeout(() => void look(), document.hidden ? 5 * everyMs : everyMs);
    }
  };
  void look();
}
