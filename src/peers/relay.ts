/**
 * Hands transactions on to where blocks are made: to an authority where one is online, otherwise to other peers, which
 * hand them on in their turn. The mempool is the queue, so that nothing that was taken is lost; a transaction is handed on
 * once, again when nothing has come of it, and given up when it is too old.
 */
import type { Transaction } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import type { RelayOutcome } from "../../gen/gatehouse/peer/v1/peer_pb.js";
import { CallError } from "../rpc/channel.js";
import type { BookEntry } from "./peer.js";
import type { PeerBook } from "./peer-book.js";

/** Whom transactions are handed to. */
export type RelayTarget = "authority" | "peer";

/** The mempool, as far as it is handed on. */
export interface RelayMempool {
  /** The oldest transactions that were not handed to such a node since then, in the order in which they came. */
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

/** What it needs. */
export interface RelayParts {
  readonly mempool: RelayMempool;
  readonly book: Pick<PeerBook, "believed">;
  readonly authorities: readonly string[];
  /** Hands transactions to a peer, and gives one outcome for each. Throws a CallError. */
  readonly send: (endpoint: string, transactions: readonly Transaction[]) => Promise<readonly RelayOutcome[]>;
  readonly nowMs: () => number;
  readonly onError: (error: unknown) => void;
}

/** The relay. */
export interface Relay {
  /** There is somebody to hand transactions to. */
  isPossible(): boolean;
  /** Hands on what is waiting, unless it is at it already. */
  kick(): void;
  /** Ends, after what is under way. */
  stop(): Promise<void>;
}

/** Most transactions that are handed on at once. */
export const maxRelayed = 100;
/** A transaction of which nothing came is handed on again after this. */
const againAfterMs = 5_000;
/** And given up after this. */
export const expiresAfterMs = 600_000;
/** Most bytes that are handed on at once. */
const maxBytes = 3 * 1024 * 1024;
/** Most peers that are tried in one go. */
const maxTargets = 3;

type Pending = Awaited<ReturnType<RelayMempool["pendingToRelay"]>>;

/** Builds it. */
export function createRelay({ mempool, book, authorities, send, nowMs, onError }: RelayParts): Relay {
  let underWay: Promise<void> | undefined;
  let isWanted = false;
  let isStopped = false;

  const isAuthority = ({ identity = "" }: BookEntry): boolean => authorities.includes(identity);

  /** Some of the peers that are authorities, or are not, by chance. */
  function targets(to: RelayTarget): string[] {
    return book
      .believed()
      .filter((entry) => isAuthority(entry) === (to === "authority"))
      .map(({ endpoint }) => ({ endpoint, chance: Math.random() }))
      .sort((a, b) => a.chance - b.chance)
      .slice(0, maxTargets)
      .map(({ endpoint }) => endpoint);
  }

  async function handOn(): Promise<void> {
    await expire();
    // What only others have had so far goes to an authority as soon as there is one, in its order.
    if (!(await handOnTo("authority"))) {
      await handOnTo("peer");
    }
  }

  /** Hands on all that waits. False when nobody takes it now. */
  async function handOnTo(to: RelayTarget): Promise<boolean> {
    const endpoints = targets(to);
    while (endpoints.length > 0 && !isStopped) {
      const waiting = fitting(await mempool.pendingToRelay(to, nowMs() - againAfterMs, maxRelayed));
      if (waiting.length === 0) {
        return true;
      }
      if (!(await handOver(to, endpoints[0]!, waiting))) {
        endpoints.shift();
      }
    }
    return false;
  }

  /** False when nothing came of it. Only an authority's word that a transaction is rejected is the last one. */
  async function handOver(to: RelayTarget, endpoint: string, waiting: Pending): Promise<boolean> {
    const taken: string[] = [];
    let rejected = 0;
    let outcomes: readonly RelayOutcome[];
    try {
      outcomes = await send(
        endpoint,
        waiting.map(({ transaction }) => transaction),
      );
    } catch (error) {
      if (error instanceof CallError) {
        return false;
      }
      throw error;
    }
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

  async function expire(): Promise<void> {
    for (const hash of await mempool.pendingSince(nowMs() - expiresAfterMs, maxRelayed)) {
      await mempool.reject(hash, `It was in no block ${expiresAfterMs / 60_000} minutes after it was submitted.`);
    }
  }

  /** What comes in meanwhile is looked for when that is done. */
  function kick(): void {
    isWanted = true;
    if (underWay === undefined && !isStopped) {
      isWanted = false;
      underWay = handOn()
        .catch(onError)
        .finally(() => {
          underWay = undefined;
          if (isWanted) {
            kick();
          }
        });
    }
  }

  return {
    isPossible: () => book.believed().length > 0,
    kick,
    async stop() {
      isStopped = true;
      await underWay;
    },
  };
}

/** As many as go at once: the first one in any case. */
function fitting(waiting: Pending): Pending {
  let bytes = 0;
  return waiting.filter(({ transaction }, i) => (bytes += transaction.body.length) <= maxBytes || i === 0);
}
