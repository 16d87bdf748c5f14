/**
 * Relays transactions to the authorities that produce blocks: directly if one is online, otherwise through other peers,
 * which relay them as well. The mempool is the queue, so that accepted transactions are not lost and their order is
 * fixed. A transaction is relayed again if it is still pending after some time, or if the receiver had no capacity for
 * it.
 */
import type { Transaction } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { TransactionStatus } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import type { RelayOutcome } from "../../../gen/gatehouse/peer/v1/peer_pb.js";
import { CallError } from "../../rpc/channel.js";
import type { BookEntry } from "../address-book/peer.js";
import { type PeerBook, shuffle } from "../address-book/peer-book.js";

/** Kind of peer that receives relayed transactions. */
type RelayTarget = "authority" | "peer";

/** Transaction in the mempool that waits to be relayed. */
interface PendingRelay {
  readonly hash: string;
  readonly transaction: Transaction;
  /** Nonce of the sender's previous transaction, which this one follows. */
  readonly afterNonce: bigint | undefined;
}

/** Methods of the mempool that the relay uses. */
export interface RelayMempool {
  /**
   * Returns the next transactions that were not relayed to this kind of peer since `relayedBeforeMs`, and are not
   * deferred. All times are from one monotonic clock.
   */
  toRelay(
    to: RelayTarget,
    relayedBeforeMs: number,
    limits: { readonly count: number; readonly bytes: number },
  ): Promise<readonly PendingRelay[]>;
  markRelayed(to: RelayTarget, hashes: readonly string[], relayedMs: number): void;
  /** Postpones transactions, and later ones of the same senders. The first delay is {@link deferredMs}. */
  defer(to: RelayTarget, hashes: readonly string[]): void;
  /** Removes transactions: those in a block, and those rejected with a reason, by hash. */
  remove(included: readonly string[], rejected: ReadonlyMap<string, string>): Promise<void>;
}

export interface RelayDeps {
  readonly mempool: RelayMempool;
  readonly book: Pick<PeerBook, "healthy">;
  readonly authorities: readonly string[];
  /**
   * Returns true if a peer with this key may see pending transactions. The key is undefined for a peer without a proved
   * identity.
   */
  readonly mayFollow: (identity: string | undefined) => boolean;
  /**
   * Sends transactions to a peer, and returns one outcome for each.
   *
   * @throws CallError
   */
  readonly send: (endpoint: string, batch: readonly PendingRelay[]) => Promise<readonly RelayOutcome[]>;
  /** Monotonic clock in milliseconds, so that clock changes neither delay nor repeat relaying. */
  readonly monotonicMs: () => number;
  readonly onError: (error: unknown) => void;
}

/** Limit on the transactions in one batch. */
export const maxRelayed = 100;
/** Time in milliseconds after which a pending transaction is relayed again. */
const relayAgainAfterMs = 5_000;
/** Time in milliseconds after which a transaction that was deferred for the first time is relayed again. */
export const deferredMs = 1_000;
/** Limits of one batch: the number of transactions, and their size. */
const batchLimits = { count: maxRelayed, bytes: 3 * 1024 * 1024 };
/** Limit on the peers that are tried in one pass. */
const maxTargets = 3;

export type Relay = ReturnType<typeof createRelay>;

/** Creates a relay. The relay stays idle until `kick` is called. */
export function createRelay({ mempool, book, authorities, mayFollow, send, monotonicMs, onError }: RelayDeps) {
  const stopped = new AbortController();
  let running: Promise<void> | undefined;
  let isRequested = false;
  let isDeferred = false;
  let timer: NodeJS.Timeout | undefined;

  /** Returns the peers that may receive transactions. */
  const receivers = (): BookEntry[] => book.healthy().filter(({ identity }) => mayFollow(identity));

  /** Relays all waiting transactions once. */
  async function relayAll(): Promise<void> {
    isDeferred = false;
    // Authorities are tried first, also for transactions that until now only other peers received.
    if (!(await relayTo("authority"))) {
      await relayTo("peer");
    }
    if (isDeferred && !stopped.signal.aborted) {
      clearTimeout(timer);
      timer = setTimeout(kick, deferredMs + 1);
    }
  }

  /**
   * Relays to up to {@link maxTargets} random peers of one kind. Skips a peer that does not respond or accepts nothing.
   * Returns false if no peer is available or none responds.
   */
  async function relayTo(to: RelayTarget): Promise<boolean> {
    const ofKind = receivers().filter(({ identity = "" }) => authorities.includes(identity) === (to === "authority"));
    const targets = shuffle(ofKind).slice(0, maxTargets);
    let hasResponded = false;
    while (targets.length > 0 && !stopped.signal.aborted) {
      const batch = await mempool.toRelay(to, monotonicMs() - relayAgainAfterMs, batchLimits);
      if (batch.length === 0) {
        return true;
      }
      const outcomes = await sendBatch(targets[0]!.endpoint, batch);
      hasResponded ||= outcomes !== undefined;
      if (outcomes === undefined || !(await record(to, batch, outcomes))) {
        targets.shift();
      }
    }
    return hasResponded;
  }

  /** Sends a batch. Returns undefined if the call fails. */
  async function sendBatch(endpoint: string, batch: readonly PendingRelay[]) {
    try {
      return await send(endpoint, batch);
    } catch (error) {
      if (error instanceof CallError) {
        return undefined;
      }
      throw error;
    }
  }

  /**
   * Records the outcomes of a batch. Only an authority can reject a transaction finally. Transactions that are rejected
   * for other reasons are deferred and stay in the mempool.
   *
   * @returns false if no transaction was accepted or finally rejected.
   */
  async function record(to: RelayTarget, batch: readonly PendingRelay[], outcomes: readonly RelayOutcome[]) {
    const accepted: string[] = [];
    const deferred: string[] = [];
    const rejected = new Map<string, string>();
    for (const [i, { hash }] of batch.entries()) {
      const { status = TransactionStatus.UNSPECIFIED, reason = "" } = outcomes[i] ?? {};
      if (status === TransactionStatus.REJECTED && to === "authority") {
        rejected.set(hash, reason);
      } else if (status === TransactionStatus.PENDING || status === TransactionStatus.INCLUDED) {
        accepted.push(hash);
      } else {
        deferred.push(hash);
      }
    }
    mempool.markRelayed(to, accepted, monotonicMs());
    mempool.defer(to, deferred);
    isDeferred ||= deferred.length > 0;
    await mempool.remove([], rejected);
    return accepted.length + rejected.size > 0;
  }

  /** Relays the waiting transactions. A call during a relay starts another one after it. */
  function kick(): void {
    isRequested = true;
    if (running === undefined && !stopped.signal.aborted) {
      isRequested = false;
      running = relayAll()
        .catch(onError)
        .finally(() => {
          running = undefined;
          if (isRequested) {
            kick();
          }
        });
    }
  }

  return {
    kick,
    /** Returns true if there is a peer to relay transactions to. */
    isPossible: () => receivers().length > 0,
    /** Stops the relay after the batch in progress. */
    async stop(): Promise<void> {
      stopped.abort();
      clearTimeout(timer);
      await running;
    },
  };
}
