/** Notifies about new blocks. All subscriptions of a page share one event stream. */
import type { HeadResponse } from "./responses.js";
import { type Http, NodeError } from "./http.js";

/** Callbacks of a subscription. */
export interface BlockListener {
  /** Called with the number of the latest block: once after the subscription, and then for each later block. */
  readonly onBlock: (number: number) => void;
  /** Called with the reason when updates stop, and with undefined when they resume. */
  readonly onError: (error: unknown) => void;
}

const pollEveryMs = 2_000;
/** Time in milliseconds after which a stream that the node rejected is requested again. */
const streamRetryMs = 30_000;
const feeds = new Map<string, BlockFeed>();

/** Watches new blocks until the signal aborts. Uses an event stream, or polls if the node rejects the stream. */
export function watchBlocks(
  node: Pick<Http, "fetchJson" | "urlOf">,
  signal: AbortSignal,
  listener: BlockListener,
): void {
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

function createFeed(node: Pick<Http, "fetchJson">, path: string): BlockFeed {
  const listeners = new Set<BlockListener>();
  let latest = -1;
  let lastError: unknown;
  let source: EventSource | undefined;
  let timer: number | undefined;

  const reportError = (error: unknown): void => {
    lastError = error;
    listeners.forEach(({ onError }) => onError(error));
  };
  const reportBlock = (number: number): void => {
    reportError(undefined);
    if (number > latest) {
      latest = number;
      listeners.forEach(({ onBlock }) => onBlock(number));
    }
  };
  const read = ({ data }: MessageEvent<string>): void =>
    reportBlock((JSON.parse(data) as { readonly blockNumber: number }).blockNumber);

  function listen(): void {
    const opened = (source = new EventSource(path));
    opened.addEventListener("block", read);
    // Sent when the stream has reached the latest block, and about every 10 s without another event.
    opened.addEventListener("progress", read);
    opened.addEventListener("error", () => {
      if (opened.readyState !== EventSource.CLOSED) {
        reportError(new NodeError("The node does not respond.", "UNREACHABLE"));
      } else if (source === opened) {
        void poll(Date.now() + streamRetryMs);
      }
    });
  }

  async function poll(untilMs: number): Promise<void> {
    await node.fetchJson<HeadResponse>("chain/head").then(({ number }) => reportBlock(number), reportError);
    if (!document.hidden) {
      timer = setTimeout(() => (Date.now() < untilMs ? void poll(untilMs) : listen()), pollEveryMs);
    }
  }

  // Browsers allow six connections per host over HTTP/1.1, so that hidden pages close theirs.
  const reconnect = (): void => {
    clearTimeout(timer);
    source?.close();
    source = undefined;
    if (!document.hidden) {
      listen();
    }
  };
  document.addEventListener("visibilitychange", reconnect);
  reconnect();

  return {
    add(listener) {
      listeners.add(listener);
      if (latest >= 0) {
        listener.onBlock(latest);
      }
      if (lastError !== undefined) {
        listener.onError(lastError);
      }
    },
    delete: (listener) => void listeners.delete(listener),
  };
}
