/** Notifies about new blocks. No other file knows the transport. */
import type { HeadAnswer } from "./answers.js";
import type { ExploredNode } from "./node.js";

/** Callbacks of a subscription. */
export interface BlockListener {
  /** Called when the latest block has another number than before. */
  readonly onBlock: (number: number) => void;
  /** Called with the reason when updates stop, and with undefined when they resume. */
  readonly onTrouble: (error: unknown) => void;
}

const askEveryMs = 2_000;
const lost = new Error("The node does not respond.");

/** Watches new blocks until the signal aborts: by a stream, or by polling if the node has no stream left. */
export function watchBlocks(node: ExploredNode, signal: AbortSignal, { onBlock, onTrouble }: BlockListener): void {
  let newest = -1;
  const hear = (number: number): void => {
    onTrouble(undefined);
    if (number > newest) {
      newest = number;
      onBlock(number);
    }
  };
  listen(node, signal, hear, (isOver) => {
    if (isOver) {
      void poll(node, signal, hear, onTrouble);
    } else {
      onTrouble(lost);
    }
  });
}

/** @param onLost called with true if the connection is closed for good; otherwise the browser reconnects. */
function listen(
  node: ExploredNode,
  signal: AbortSignal,
  hear: (number: number) => void,
  onLost: (isOver: boolean) => void,
): void {
  const source = new EventSource(node.urlOf("events?kinds=block"));
  const read = ({ data }: MessageEvent<string>): void =>
    hear((JSON.parse(data) as { readonly blockNumber: number }).blockNumber);
  source.addEventListener("block", read);
  // It comes where the newest block is reached, and about every ten seconds in which nothing else does.
  source.addEventListener("progress", read);
  source.addEventListener("error", () => onLost(source.readyState === EventSource.CLOSED));
  signal.addEventListener("abort", () => source.close());
}

/** Polls, less often while the page is hidden. */
async function poll(
  node: ExploredNode,
  signal: AbortSignal,
  hear: (number: number) => void,
  onTrouble: (error: unknown) => void,
): Promise<void> {
  for (;;) {
    try {
      hear((await node.ask<HeadAnswer>("chain/head", signal)).number);
    } catch (error) {
      if (signal.aborted) {
        return;
      }
      onTrouble(error);
    }
    await new Promise((resolve) => setTimeout(resolve, document.hidden ? 5 * askEveryMs : askEveryMs));
  }
}
