/**
 * Relays transactions to where blocks are made: to an authority where one is online, otherwise to other peers, which
 * relay them as well. The mempool is the queue, so that nothing that was taken is lost, and whose turn it is, is known; a
 * transaction is relayed once, again when nothing has come of it, and later when who gets it has no room.
 */
import type { Transaction } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { TransactionStatus } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import type { RelayOutcome } from "../../../gen/gatehouse/peer/v1/peer_pb.js";
import { CallError } from "../../rpc/channel.js";
import type { BookEntry } from "../address-book/peer.js";
import type { PeerBook } from "../address-book/peer-book.js";

/** Whom transactions are relayed to. */
export type RelayTarget = "authority" | "peer";

/** A transaction that waits to be relayed. */
export interface Waiting {
  readonly hash: string;
  readonly transaction: Transaction;
  /** Nonce of its sender's transaction before it, which it comes after. */
  readonly afterNonce: bigint | undefined;
}

/** The mempool, as far as it is relayed. */
export interface RelayMempool {
  /**
   * Those whose turn is next, of those that were not relayed to such a node since then and are not deferred; all times are
   * of one clock that does not jump.
   */
  toRelay(
    to: RelayTarget,
    relayedBeforeMs: number,
    bounds: { readonly count: number; readonly bytes: number },
  ): Promise<readonly Waiting[]>;
  markRelayed(to: RelayTarget, hashes: readonly string[], relayedMs: number): void;
  /** Lets these wait for a while, and what their senders sent after them: for {@link deferredMs} at first. */
  defer(to: RelayTarget, hashes: readonly string[]): void;
  /** Takes transactions out and remembers why, by hash. */
  reject(rejected: ReadonlyMap<string, string>): Promise<void>;
}

export interface RelayDeps {
  readonly mempool: RelayMempool;
  readonly book: Pick<PeerBook, "believed">;
  readonly authorities: readonly string[];
  /** Whether a peer with this key may know what waits; undefined for one that proved none. */
  readonly mayFollow: (identity: string | undefined) => boolean;
  /** Sends transactions to a peer, and gives one outcome for each. Throws a CallError. */
  readonly send: (endpoint: string, waiting: readonly Waiting[]) => Promise<readonly RelayOutcome[]>;
  /** A clock that does not jump: what was relayed is relayed again when its time has passed. */
  readonly monotonicMs: () => number;
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
/** One that was refused for the moment is relayed again after this. */
export const deferredMs = 1_000;
/** Most bytes that are relayed at once. */
const maxBytes = 3 * 1024 * 1024;
/** Most peers that are tried in one go. */
const maxTargets = 3;

/** Builds a relay; it does nothing before it is kicked. */
export function createRelay(deps: RelayDeps): Relay {
  let underWay: Promise<void> | undefined;
  let isWanted = false;
  let timer: NodeJS.Timeout | undefined;
  const stopped = new AbortController();
  const relayAll = createRelayPass(deps, stopped.signal);

  /** What comes in meanwhile is looked for when that is done. */
  function kick(): void {
    isWanted = true;
    if (underWay === undefined && !stopped.signal.aborted) {
      isWanted = false;
      underWay = relayAll()
        .then(kickLater, deps.onError)
        .finally(() => {
          underWay = undefined;
          if (isWanted) {
            kick();
          }
        });
    }
  }

  function kickLater(isDeferred: boolean): void {
    if (isDeferred && !stopped.signal.aborted) {
      clearTimeout(timer);
      timer = setTimeout(kick, deferredMs + 1);
    }
  }

  return {
    isPossible: () => takers(deps).length > 0,
    kick,
    async stop() {
      stopped.abort();
      clearTimeout(timer);
      await underWay;
    },
  };
}

/** Builds the function that relays all that waits, once. It gives whether some was deferred. */
function createRelayPass(deps: RelayDeps, stopped: AbortSignal): () => Promise<boolean> {
  const { mempool, send, monotonicMs } = deps;
  let isDeferred = false;

  /** False when nobody answers. Who refuses everything is not asked for more now. */
  async function relayTo(to: RelayTarget): Promise<boolean> {
    const endpoints = targets(deps, to);
    let isAnswered = false;
    while (endpoints.length > 0 && !stopped.aborted) {
      const waiting = await mempool.toRelay(to, monotonicMs() - againAfterMs, { count: maxRelayed, bytes: maxBytes });
      if (waiting.length === 0) {
        return true;
      }
      const outcomes = await sendBatch(endpoints[0]!, waiting);
      isAnswered ||= outcomes !== undefined;
      if (outcomes === undefined || !(await record(to, waiting, outcomes))) {
        endpoints.shift();
      }
    }
    return isAnswered;
  }

  /** Undefined when the peer does not answer. */
  async function sendBatch(
    endpoint: string,
    waiting: readonly Waiting[],
  ): Promise<readonly RelayOutcome[] | undefined> {
    try {
      return await send(endpoint, waiting);
    } catch (error) {
      if (error instanceof CallError) {
        return undefined;
      }
      throw error;
    }
  }

  /**
   * False when nothing came of any. Only an authority's word that a transaction is rejected is the last one. What is
   * refused for the moment keeps its place here, and nobody else's.
   */
  async function record(
    to: RelayTarget,
    waiting: readonly Waiting[],
    outcomes: readonly RelayOutcome[],
  ): Promise<boolean> {
    const taken: string[] = [];
    const refused: string[] = [];
    const rejected = new Map<string, string>();
    for (const [i, { hash }] of waiting.entries()) {
      const { status = TransactionStatus.UNSPECIFIED, reason = "" } = outcomes[i] ?? {};
      if (status === TransactionStatus.REJECTED && to === "authority") {
        rejected.set(hash, reason);
      } else if (status === TransactionStatus.PENDING || status === TransactionStatus.INCLUDED) {
        taken.push(hash);
      } else {
        refused.push(hash);
      }
    }
    mempool.markRelayed(to, taken, monotonicMs());
    mempool.defer(to, refused);
    isDeferred ||= refused.length > 0;
    await mempool.reject(rejected);
    return taken.length + rejected.size > 0;
  }

  return async () => {
    isDeferred = false;
    // What only others have had so far goes to an authority as soon as there is one, in its order.
    if (!(await relayTo("authority"))) {
      await relayTo("peer");
    }
    return isDeferred;
  };
}

/** The peers that transactions may be relayed to. */
function takers({ book, mayFollow }: RelayDeps): BookEntry[] {
  return book.believed().filter(({ identity }) => mayFollow(identity));
}

/** Some of them that are authorities, or are not, by chance. */
function targets(deps: RelayDeps, to: RelayTarget): string[] {
  return takers(deps)
    .filter(({ identity = "" }) => deps.authorities.includes(identity) === (to === "authority"))
    .map(({ endpoint }) => ({ endpoint, chance: Math.random() }))
    .sort((a, b) => a.chance - b.chance)
    .slice(0, maxTargets)
    .map(({ endpoint }) => endpoint);
}
