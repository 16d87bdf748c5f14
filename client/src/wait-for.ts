/** Waits until a transaction is in a block. */
import type { Client } from "@connectrpc/connect";
import { type ChainService, TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { EventKind, type EventService } from "../../gen/gatehouse/event/v1/event_pb.js";
import { withTransactionHash, toGatehouseError } from "./errors.js";
import { GatehouseError } from "./gatehouse-error.js";
import type { ClientLifecycle } from "./lifetime.js";
import { ProofError } from "./proof/proof-error.js";
import { sleep } from "./retry.js";
import type { CallOptions } from "./submit.js";

/** Transaction that is in a block. */
export interface Included {
  readonly hash: string;
  readonly blockNumber: bigint;
}

const defaultTimeoutMs = 60_000;
/** Wait in milliseconds between two polls. It grows, so that long waits cost the node little. */
const firstWaitMs = 100;
const maxWaitMs = 2_000;

/**
 * Wait in milliseconds between polls while the event stream works. Polls are still needed: the stream reports a
 * rejection only once, and not if another node rejected the transaction.
 */
const notifiedWaitMs = 5_000;

export interface WaitDeps {
  readonly chain: Client<typeof ChainService>;
  readonly lifetime: ClientLifecycle;
  /** Event service; undefined if its messages are not trusted. */
  readonly event: Client<typeof EventService> | undefined;
}

/**
 * Creates the function that waits until a transaction is in a block. Unknown transactions are awaited too, because they
 * may arrive from another node.
 *
 * @returns a function that rejects with GatehouseError REJECTED and the reason of the node; with NOT_FOUND or
 * DEADLINE_EXCEEDED if the transaction is unknown or pending at the end of the time limit.
 */
export function createWaitFor({ chain, lifetime, event }: WaitDeps) {
  // Browsers limit connections per node, so only one wait has an event stream. Concurrent waits poll.
  let isListening = false;

  /** Notifies the wait of each message of the stream, until the signal is aborted. */
  async function listen(hash: string, notification: Notification, signal: AbortSignal): Promise<void> {
    if (event === undefined || isListening) {
      return;
    }
    isListening = true;
    try {
      const request = { transactions: [hash], kinds: [EventKind.TRANSACTION] };
      const messages = event.watch(request, { signal })[Symbol.asyncIterator]();
      while ((await messages.next()).done !== true) {
        notification.notify();
      }
    } catch {
      // Polling works without the stream, and older nodes report no transactions.
    } finally {
      isListening = false;
      notification.isOpen = false;
    }
  }

  return async (hash: string, { signal, timeoutMs = defaultTimeoutMs }: CallOptions): Promise<Included> =>
    await lifetime.run(signal, async (callSignal) => {
      const streamController = new AbortController();
      const notification = createNotification();
      void listen(hash, notification, streamController.signal);
      // As for calls, 0 means no limit.
      const endsAtMs = timeoutMs > 0 ? performance.now() + timeoutMs : Infinity;
      let lastError: GatehouseError | undefined;
      try {
        for (let waitMs = firstWaitMs; ; waitMs = Math.min(maxWaitMs, waitMs * 1.5)) {
          const leftMs = endsAtMs === Infinity ? undefined : Math.max(1, Math.floor(endsAtMs - performance.now()));
          const result = await poll(chain, hash, { signal: callSignal, timeoutMs: leftMs });
          if (!(result instanceof GatehouseError)) {
            return result;
          }
          // A poll that hit the deadline says less than the poll before it.
          lastError =
            lastError !== undefined && result.reason === "DEADLINE_EXCEEDED" && result.cause !== undefined
              ? lastError
              : result;
          const restMs = endsAtMs - performance.now();
          if (!notification.isOpen && restMs <= waitMs) {
            throw lastError;
          }
          await notification.wait(notification.isOpen ? Math.min(notifiedWaitMs, restMs) : waitMs, callSignal);
          if (performance.now() >= endsAtMs) {
            throw lastError;
          }
        }
      } finally {
        streamController.abort();
      }
    });
}

/** Notifications during a wait. */
interface Notification {
  /** True if a message arrived and the stream is still open. */
  isOpen: boolean;
  notify(): void;
  /** Resolves after this time, or earlier at a notification. Resolves at once if one arrived since the last wait. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
}

function createNotification(): Notification {
  let hasUnread = false;
  let endWait: () => void = () => undefined;
  const notification: Notification = {
    isOpen: false,
    notify() {
      notification.isOpen = true;
      hasUnread = true;
      endWait();
    },
    async wait(ms, signal) {
      if (!hasUnread) {
        const controller = new AbortController();
        const stop = (): void => controller.abort();
        endWait = stop;
        signal.addEventListener("abort", stop, { once: true });
        await sleep(ms, controller.signal).catch(() => undefined);
        signal.removeEventListener("abort", stop);
        signal.throwIfAborted();
      }
      hasUnread = false;
    },
  };
  return notification;
}

/** Returns the block of the transaction, or the error to report if it is still in no block at the deadline. */
async function poll(
  chain: Client<typeof ChainService>,
  hash: string,
  options: CallOptions,
): Promise<Included | GatehouseError> {
  try {
    const { status, blockNumber, reason } = await chain.getTransaction({ hash }, options);
    if (status === TransactionStatus.INCLUDED) {
      return { hash, blockNumber: blockNumber! };
    }
    if (status === TransactionStatus.REJECTED) {
      const message = reason ?? "The transaction is rejected.";
      throw new GatehouseError(message, "REJECTED", { transactionHash: hash, fromNode: true });
    }
    const message = "The transaction is still pending; check again later.";
    return new GatehouseError(message, "DEADLINE_EXCEEDED", { transactionHash: hash, fromNode: true });
  } catch (thrown) {
    options.signal?.throwIfAborted();
    const error = toGatehouseError(thrown);
    if (error.reason === "NOT_FOUND" || error.reason === "DEADLINE_EXCEEDED") {
      return withTransactionHash(error, hash);
    }
    // Only inclusion in a block can be proven, so this error means that the transaction is in no block yet.
    if (error instanceof ProofError && error.flaw === "unprovable") {
      return error;
    }
    throw error;
  }
}
