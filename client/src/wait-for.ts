/** Follows a transaction into its block. */
import type { Client } from "@connectrpc/connect";
import { type ChainService, TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { EventKind, type EventService } from "../../gen/gatehouse/event/v1/event_pb.js";
import { ofTransaction, toGatehouseError } from "./errors.js";
import { GatehouseError } from "./gatehouse-error.js";
import type { ClientLifecycle } from "./lifetime.js";
import { ProofError } from "./proof/proof-error.js";
import { sleep } from "./retry.js";
import type { CallOptions } from "./submit.js";

/** A transaction that is in a block. */
export interface Included {
  readonly hash: string;
  readonly blockNumber: bigint;
}

const usualTimeoutMs = 60_000;
/** The wait between two looks grows, so that many who wait long cost little. */
const firstWaitMs = 100;
const maxWaitMs = 2_000;

/** Looks are far apart where the node tells by itself: what it rejects it tells once, and another node not at all. */
const toldWaitMs = 5_000;

/** What it is made of. */
export interface WaitDeps {
  readonly chain: Client<typeof ChainService>;
  readonly lifetime: ClientLifecycle;
  /** What tells of transactions; undefined where it is not to be believed. */
  readonly event: Client<typeof EventService> | undefined;
}

/**
 * Builds the function that waits until a transaction is in a block. One that the node does not know is waited for, too: it
 * may come from another node.
 *
 * @returns rejects with GatehouseError REJECTED with the sentence that says why; NOT_FOUND or DEADLINE_EXCEEDED when the time
 * is over and it is unknown or pending.
 */
export function createWaitFor({ chain, lifetime, event }: WaitDeps) {
  // A browser has few connections to a node: one wait has a stream of its own, and others that go on meanwhile look.
  let isListening = false;

  /** Tells whenever the stream does, until it is ended. */
  async function listen(hash: string, told: Told, signal: AbortSignal): Promise<void> {
    if (event === undefined || isListening) {
      return;
    }
    isListening = true;
    try {
      const request = { transactions: [hash], kinds: [EventKind.TRANSACTION] };
      const messages = event.watch(request, { signal })[Symbol.asyncIterator]();
      while ((await messages.next()).done !== true) {
        told.tell();
      }
    } catch {
      // Looking does without; a node of before tells nothing.
    } finally {
      isListening = false;
      told.isOpen = false;
    }
  }

  return async (hash: string, { signal, timeoutMs = usualTimeoutMs }: CallOptions): Promise<Included> =>
    await lifetime.run(signal, async (own) => {
      const over = new AbortController();
      const told = createTold();
      void listen(hash, told, over.signal);
      const endsAtMs = performance.now() + timeoutMs;
      let last: GatehouseError | undefined;
      try {
        for (let waitMs = firstWaitMs; ; waitMs = Math.min(maxWaitMs, waitMs * 1.5)) {
          const leftMs = Math.max(1, Math.floor(endsAtMs - performance.now()));
          const found = await look(chain, hash, { signal: own, timeoutMs: leftMs });
          if (!(found instanceof GatehouseError)) {
            return found;
          }
          // A look that the time ran out for tells less than the one before.
          last = last !== undefined && found.reason === "DEADLINE_EXCEEDED" && found.cause !== undefined ? last : found;
          const restMs = endsAtMs - performance.now();
          if (!told.isOpen && restMs <= waitMs) {
            throw last;
          }
          await told.wait(told.isOpen ? Math.min(toldWaitMs, restMs) : waitMs, own);
          if (performance.now() >= endsAtMs) {
            throw last;
          }
        }
      } finally {
        over.abort();
      }
    });
}

/** What is told while somebody waits. */
interface Told {
  /** Something was told, and more will be. */
  isOpen: boolean;
  tell(): void;
  /** Resolves after this time, or earlier where something is told, or was since the last wait. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
}

function createTold(): Told {
  let isNew = false;
  let wake: () => void = () => undefined;
  const told: Told = {
    isOpen: false,
    tell() {
      told.isOpen = true;
      isNew = true;
      wake();
    },
    async wait(ms, signal) {
      if (!isNew) {
        const waiting = new AbortController();
        const stop = (): void => waiting.abort();
        wake = stop;
        signal.addEventListener("abort", stop, { once: true });
        await sleep(ms, waiting.signal).catch(() => undefined);
        signal.removeEventListener("abort", stop);
        signal.throwIfAborted();
      }
      isNew = false;
    },
  };
  return told;
}

/** Where it is; the error to give up with where it is nowhere yet. */
async function look(
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
      throw new GatehouseError(reason ?? "The transaction is rejected.", "REJECTED", { transactionHash: hash });
    }
    const sentence = "The transaction is still pending; look again later.";
    return new GatehouseError(sentence, "DEADLINE_EXCEEDED", { transactionHash: hash });
  } catch (thrown) {
    options.signal?.throwIfAborted();
    const error = toGatehouseError(thrown);
    if (error.reason === "NOT_FOUND" || error.reason === "DEADLINE_EXCEEDED") {
      return ofTransaction(error, hash);
    }
    // That it is in no block is what cannot be proved.
    if (error instanceof ProofError && error.flaw === "unprovable") {
      return error;
    }
    throw error;
  }
}
