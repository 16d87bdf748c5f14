/**
 * Brings the chain to the head of the verified peers: streams the missing blocks from one of them, checks and applies
 * each, and goes on with another one when it stalls, ends early or sends what no authority has made. What was applied is
 * applied, so it resumes where it stopped, whatever stopped it.
 */
import type { Block } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { CallError } from "../rpc/channel.js";
import { Failure } from "../rpc/errors.js";
import type { BookEntry } from "./peer.js";
import type { PeerBook } from "./peer-book.js";

/** The chain, as far as it is brought forward here. */
export interface FollowedChain {
  /** Number of the newest block; undefined while there is no chain. */
  head(): bigint | undefined;
  /** Applies the next block. Throws a Failure when it is not that. */
  apply(block: Block): Promise<unknown>;
}

/** How far it is. */
export interface SyncProgress {
  readonly block: bigint;
  readonly targetBlock: bigint;
  readonly blocksPerS: number;
  /** Undefined while nothing comes. */
  readonly leftS: number | undefined;
  /** Where the blocks come from; undefined between two peers. */
  readonly peer: string | undefined;
}

/** What it needs. */
export interface SyncParts {
  readonly book: Pick<PeerBook, "believed" | "highestBlock" | "distrust" | "recordFailure">;
  readonly chain: FollowedChain;
  /** A peer's blocks from a number on, until the signal is aborted. Throws a CallError. */
  readonly blocks: (
    endpoint: string,
    fromNumber: bigint,
    signal: AbortSignal,
  ) => AsyncGenerator<Block | undefined, void>;
  /** How long a peer may take for the next block. */
  readonly stallMs: number;
  readonly nowMs: () => number;
  /** Hears of trouble that is none of a peer's. */
  readonly onError: (error: unknown) => void;
  /** Hears that it has caught up, or can go no further. */
  readonly onEnd: () => void;
  /** Hears of a peer that is left, and why. */
  readonly onLeft: (endpoint: string, reason: string) => void;
}

/** The synchronisation. */
export interface Sync {
  /** Catches up, if there is anything to catch up with and it is not at it already. */
  kick(): void;
  /** It is catching up. */
  isActive(): boolean;
  /** Resolves when it is not catching up. */
  settled(): Promise<void>;
  /** How far it is; undefined while it is not catching up. */
  progress(): SyncProgress | undefined;
  /** Ends, after the block under way. */
  stop(): Promise<void>;
}

/** A peer that is waited for so long for fewer blocks than {@link leastBlocks} is left, if there is another one. */
const paceWindowMs = 10_000;
const leastBlocks = 10;

/** Builds it. */
export function createSync(parts: SyncParts): Sync {
  const { book, chain, blocks, stallMs, nowMs, onError, onEnd, onLeft } = parts;
  let underWay: Promise<void> | undefined;
  let isStopped = false;
  let stopStream: () => void = () => undefined;
  let peer: string | undefined;
  const meter = createMeter(nowMs);

  /** Those that have a block which is missing here: the furthest first, and chance among equals. */
  function candidates(): BookEntry[] {
    const number = chain.head();
    return number === undefined
      ? []
      : book
          .believed()
          .filter(({ head }) => head !== undefined && head.number > number)
          .map((entry) => ({ entry, chance: Math.random() }))
          .sort((a, b) => Number(b.entry.head!.number - a.entry.head!.number) || a.chance - b.chance)
          .map(({ entry }) => entry);
  }

  async function catchUp(): Promise<void> {
    let left: string | undefined;
    for (;;) {
      const found = candidates();
      const next = found.find(({ endpoint }) => endpoint !== left) ?? found[0];
      if (isStopped || next === undefined) {
        return;
      }
      peer = next.endpoint;
      left = (await follow(next)) ? undefined : next.endpoint;
      peer = undefined;
    }
  }

  /** Applies what a peer has. False when it is better to go on with another one. */
  async function follow({ endpoint, head }: BookEntry): Promise<boolean> {
    const promised = head!.number;
    const ended = new AbortController();
    const stream = blocks(endpoint, chain.head()! + 1n, ended.signal);
    const pace = createPace(nowMs);
    try {
      for (;;) {
        const next = await pace.waitFor(within(stream.next()));
        if (isStopped) {
          return false;
        }
        if (next === "stalled") {
          return leave(endpoint, `It sent no block for ${stallMs / 1000} s.`);
        }
        if (next.done === true) {
          return (
            chain.head()! >= promised || leave(endpoint, `It has not sent block ${promised}, which it said it has.`)
          );
        }
        await applyOf(next.value);
        meter.count();
        if (pace.isTooSlow() && candidates().some((other) => other.endpoint !== endpoint)) {
          onLeft(endpoint, "It is slow, and there are others.");
          return false;
        }
      }
    } catch (error) {
      return explain(endpoint, error);
    } finally {
      ended.abort();
      stopStream = () => undefined;
    }
  }

  async function applyOf(block: Block | undefined): Promise<void> {
    if (block === undefined) {
      throw new Failure("INVALID_REQUEST", "It sent a message without a block.");
    }
    await chain.apply(block);
  }

  function explain(endpoint: string, error: unknown): boolean {
    // A transient one is this node's own trouble, whatever the block is like.
    if (error instanceof Failure && !error.kind.transient) {
      return leave(endpoint, `It sent a block that cannot be applied. ${error.message}`);
    }
    if (error instanceof CallError) {
      onLeft(endpoint, error.message);
      book.recordFailure(endpoint);
      return false;
    }
    throw error;
  }

  function leave(endpoint: string, reason: string): boolean {
    onLeft(endpoint, reason);
    book.distrust(endpoint, reason);
    return false;
  }

  /** The next block, or word that it did not come in time or that there is no use in waiting. */
  function within<T>(next: Promise<T>): Promise<T | "stalled"> {
    next.catch(() => undefined);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => resolve("stalled"), stallMs);
      stopStream = () => resolve("stalled");
      next.then(resolve, reject).finally(() => clearTimeout(timer));
    });
  }

  return {
    kick() {
      if (underWay === undefined && !isStopped && candidates().length > 0) {
        meter.reset();
        underWay = catchUp()
          .catch(onError)
          .finally(() => {
            underWay = undefined;
            onEnd();
          });
      }
    },
    isActive: () => underWay !== undefined,
    settled: () => underWay ?? Promise.resolve(),
    progress() {
      const block = chain.head();
      const targetBlock = book.highestBlock();
      if (underWay === undefined || block === undefined || targetBlock === undefined) {
        return undefined;
      }
      const blocksPerS = meter.perS();
      const left = Number(targetBlock > block ? targetBlock - block : 0n);
      return { block, targetBlock, blocksPerS, leftS: blocksPerS > 0 ? left / blocksPerS : undefined, peer };
    },
    async stop() {
      isStopped = true;
      stopStream();
      await underWay;
    },
  };
}

/** Blocks a second over the last seconds. */
function createMeter(nowMs: () => number) {
  const windowS = 5;
  const counts = new Map<number, number>();
  let startMs = nowMs();
  const second = (): number => Math.floor(nowMs() / 1000);
  return {
    reset() {
      startMs = nowMs();
      counts.clear();
    },
    count() {
      const now = second();
      counts.set(now, (counts.get(now) ?? 0) + 1);
      counts.delete(now - windowS - 1);
    },
    perS() {
      const sinceMs = Math.max(startMs, (second() - windowS) * 1000);
      let total = 0;
      for (const [at, count] of counts) {
        total += at * 1000 + 999 >= sinceMs ? count : 0;
      }
      return Math.round((total / Math.max(nowMs() - sinceMs, 1)) * 10_000) / 10;
    },
  };
}

/** Whether one peer's blocks come too slowly; the time in which they are applied does not count. */
function createPace(nowMs: () => number) {
  let waitedMs = 0;
  let count = 0;
  return {
    async waitFor<T>(block: Promise<T>): Promise<T> {
      const startMs = nowMs();
      const result = await block;
      waitedMs += nowMs() - startMs;
      return result;
    },
    isTooSlow(): boolean {
      count++;
      if (waitedMs < paceWindowMs) {
        return false;
      }
      const isSlow = count < leastBlocks;
      waitedMs = 0;
      count = 0;
      return isSlow;
    },
  };
}
