/**
 * Relays transactions to where blocks are made: to an authority where one is online, otherwise to other peers, which
 * relay them as well. The mempool is the queue, so that nothing that was taken is lost; a transaction is relayed once,
 * again when nothing has come of it, and given up when it is too old.
 */
import type { Transaction } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import type { RelayOutcome } from "../../gen/gatehouse/peer/v1/peer_pb.js";
import { CallError } from "../rpc/channel.js";
import type { BookEntry } from "./peer.js";
import type { PeerBook } from "./peer-book.js";

/** Whom transactions are relayed to. */
export type RelayTarget = "authority" | "peer";

/** The mempool, as far as it is relayed. */
export interface RelayMempool {
  /** The oldest transactions that were not relayed to such a node since then, in the order in which they came. */
  pendingToRelay(
    to: RelayTarget,
    relayedBeforeMs: number,
    limit: number,
  ): Promise<readonly { readonly hash: string; readonly transaction: Transaction }[]>;
  markRelayed(to: RelayTarget, hashes: readonly string[], relayedMs: number): Promise<void>;
  /** Hashes of transactions that came before then. */
  pendingSince(receivedBeforeMs: number, limit: number): Promise<readonly string[]>;
  /** Takes a transaction out and remembers why. */
  reject(hash: string, reason: string): Promise<void>;
}

export interface RelayParts {
  readonly mempool: RelayMempool;
  readonly book: Pick<PeerBook, "believed">;
  readonly authorities: readonly string[];
  /** Whether a peer with this key may know what waits; undefined for one that proved none. */
  readonly mayFollow: (identity: string | undefined) => boolean;
  /** Sends transactions to a peer, and gives one outcome for each. Throws a CallError. */
  readonly send: (endpoint: string, transactions: readonly Transaction[]) => Promise<readonly RelayOutcome[]>;
  readonly nowMs: () => number;
  readonly onError: (error: unknown) => void;
}

export interface Relay {
  /** There is somebody to relay transactions to. */
  isPossible(): boolean;
  /** Relays what is waiting, unless it is at it already. */
  kick(): void;
  /** Ends, after what is under way. */
  stop(): Promise<void>;
}

/** Most transactions that are relayed at once. */
export const maxRelayed = 100;
/** A transaction of which nothing came is relayed again after this. */
const againAfterMs = 5_000;
/** And given up after this. */
export const expiresAfterMs = 600_000;
/** Most bytes that are relayed at once. */
const maxBytes = 3 * 1024 * 1024;
/** Most peers that are tried in one go. */
const maxTargets = 3;

type Pending = Awaited<ReturnType<RelayMempool["pendingToRelay"]>>;

/** Builds a relay; it does nothing before it is kicked. */
export function createRelay(parts: RelayParts): Relay {
  let underWay: Promise<void> | undefined;
  let isWanted = false;
  const stopped = new AbortController();
  const relayAll = createRelayPass(parts, stopped.signal);

  /** What comes in meanwhile is looked for when that is done. */
  function kick(): void {
    isWanted = true;
    if (underWay === undefined && !stopped.signal.aborted) {
      isWanted = false;
      underWay = relayAll()
        .catch(parts.onError)
        .finally(() => {
          underWay = undefined;
          if (isWanted) {
            kick();
          }
        });
    }
  }

  return {
    isPossible: () => takers(parts).length > 0,
    kick,
    async stop() {
      stopped.abort();
      await underWay;
    },
  };
}

/** Builds the function that relays all that waits, once. */
function createRelayPass(parts: RelayParts, stopped: AbortSignal): () => Promise<void> {
  const { mempool, send, nowMs } = parts;

  /** False when nobody takes what waits now. */
  async function relayTo(to: RelayTarget): Promise<boolean> {
    const endpoints = targets(parts, to);
    while (endpoints.length > 0 && !stopped.aborted) {
      const waiting = fitting(await mempool.pendingToRelay(to, nowMs() - againAfterMs, maxRelayed));
      if (waiting.length === 0) {
        return true;
      }
      const outcomes = await sendBatch(endpoints[0]!, waiting);
      if (outcomes === undefined || !(await record(to, waiting, outcomes))) {
        endpoints.shift();
      }
    }
    return false;
  }

  /** Undefined when the peer does not answer. */
  async function sendBatch(endpoint: string, waiting: Pending): Promise<readonly RelayOutcome[] | undefined> {
    try {
      return await send(
        endpoint,
        waiting.map(({ transaction }) => transaction),
      );
    } catch (error) {
      if (error instanceof CallError) {
        return undefined;
      }
      throw error;
    }
  }

  /** False when nothing came of any. Only an authority's word that a transaction is rejected is the last one. */
  async function record(to: RelayTarget, waiting: Pending, outcomes: readonly RelayOutcome[]): Promise<boolean> {
    const taken: string[] = [];
    let rejected = 0;
    for (const [i, { hash }] of waiting.entries()) {
      const { status = TransactionStatus.UNSPECIFIED, reason = "" } = outcomes[i] ?? {};
      if (status === TransactionStatus.REJECTED && to === "authority") {
        await mempool.reject(hash, reason);
        rejected++;
      } else if (status === TransactionStatus.PENDING || status === TransactionStatus.INCLUDED) {
        taken.push(hash);
      }
    }
    await mempool.markRelayed(to, taken, nowMs());
    return taken.length + rejected > 0;
  }

  return async () => {
    await expire(parts);
    // What only others have had so far goes to an authority as soon as there is one, in its order.
    if (!(await relayTo("authority"))) {
      await relayTo("peer");
    }
  };
}

/** The peers that transactions may be relayed to. */
function takers({ book, mayFollow }: RelayParts): BookEntry[] {
  return book.believed().filter(({ identity }) => mayFollow(identity));
}

/** Some of them that are authorities, or are not, by chance. */
function targets(parts: RelayParts, to: RelayTarget): string[] {
  return takers(parts)
    .filter(({ identity = "" }) => parts.authorities.includes(identity) === (to === "authority"))
    .map(({ endpoint }) => ({ endpoint, chance: Math.random() }))
    .sort((a, b) => a.chance - b.chance)
    .slice(0, maxTargets)
    .map(({ endpoint }) => endpoint);
}

async function expire({ mempool, nowMs }: RelayParts): Promise<void> {
  for (const hash of await mempool.pendingSince(nowMs() - expiresAfterMs, maxRelayed)) {
    await mempool.reject(hash, `It was in no block ${expiresAfterMs / 60_000} minutes after it was submitted.`);
  }
}

/** As many as go at once: the first one in any case. */
function fitting(waiting: Pending): Pending {
  let bytes = 0;
  return waiting.filter(({ transaction }, i) => (bytes += transaction.body.length) <= maxBytes || i === 0);
}
