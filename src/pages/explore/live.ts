/** Notifies about new blocks, by one stream for all of the page. No other file knows the transport. */
import type { HeadAnswer } from "./answers.js";
import { type Http, NodeError } from "./http.js";

/** Callbacks of a subscription. */
export interface BlockListener {
  /** Called when the latest block has another number than before, and first with its number now. */
  readonly onBlock: (number: number) => void;
  /** Called with the reason when updates stop, and with undefined when they resume. */
  readonly onTrouble: (error: unknown) => void;
}

const pollEveryMs = 2_000;
/** Time in milliseconds after which a stream that the node refused is requested again. */
const againAfterMs = 30_000;
const feeds = new Map<string, BlockFeed>();

/** Watches new blocks until the signal aborts: by a stream, or by polling if the node has no stream left. */
export function watchBlocks(node: Pick<Http, "ask" | "urlOf">, signal: AbortSignal, listener: BlockListener): void {
  const path = node.urlOf("events?kinds=block");
  let feed = feeds.get(path);
  if (feed === undefined) {
    feeds.set(path, (feed = createFeed(node, path)));
  }
  feed.add(listener);
  signal.addEventListener("abort", () => feed.delete(listener));
}

interface BlockFeed {
  add(listener: BlockListener): void;
  delete(listener: BlockListener): void;
}

function createFeed(node: Pick<Http, "ask">, path: string): BlockFeed {
  const listeners = new Set<BlockListener>();
  let latest = -1;
  let trouble: unknown;
  let source: EventSource | undefined;
  let timer: number | undefined;

  const report = (error: unknown): void => {
    trouble = error;
    listeners.forEach(({ onTrouble }) => onTrouble(error));
  };
  const hear = (number: number): void => {
    report(undefined);
    if (number > latest) {
      latest = number;
      listeners.forEach(({ onBlock }) => onBlock(number));
    }
  };
  const read = ({ data }: MessageEvent<string>): void =>
    hear((JSON.parse(data) as { readonly blockNumber: number }).blockNumber);

  function listen(): void {
    const opened = (source = new EventSource(path));
    opened.addEventListener("block", read);
    // It comes where the latest block is reached, and about every ten seconds in which nothing else does.
    opened.addEventListener("progress", read);
    opened.addEventListener("error", () => {
      if (opened.readyState !== EventSource.CLOSED) {
        report(new NodeError("The node does not respond.", "UNREACHABLE"));
      } else if (source === opened) {
        void poll(Date.now() + againAfterMs);
      }
    });
  }

  async function poll(untilMs: number): Promise<void> {
    await node.ask<HeadAnswer>("chain/head").then(({ number }) => hear(number), report);
    if (!document.hidden) {
      timer = setTimeout(() => (Date.now() < untilMs ? void poll(untilMs) : listen()), pollEveryMs);
    }
  }

  // Browsers allow six connections over HTTP/1.1: hidden pages must not hold them.
  const wake = (): void => {
    clearTimeout(timer);
    source?.close();
    source = undefined;
    if (!document.hidden) {
      listen();
    }
  };
  document.addEventListener("visibilitychange", wake);
  wake();

  return {
    add(listener) {
      listeners.add(listener);
      if (latest >= 0) {
        listener.onBlock(latest);
      }
      if (trouble !== undefined) {
        listener.onTrouble(trouble);
      }
    },
    delete: (listener) => void listeners.delete(listener),
  };
}
