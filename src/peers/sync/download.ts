/** Applies the blocks of one peer, as long as they come and fit. */
import type { Block } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { CallError } from "../../rpc/channel.js";
import { RpcError } from "../../rpc/errors.js";
import type { BookEntry } from "../address-book/peer.js";
import { createSlowPeerDetector } from "./slow-peer-detector.js";

/** The chain, as far as it is brought forward here. */
export interface SyncChain {
  /** Number of the newest block; undefined while there is no chain. */
  head(): bigint | undefined;
  /** Applies the next block. Throws a Failure when it is not that. */
  apply(block: Block): Promise<unknown>;
  /** Looks at a block that is not to be applied, who signed it. Throws a Failure when nobody did. */
  hear(block: Block): unknown;
}

export interface DownloadDeps {
  readonly chain: SyncChain;
  /** A peer's blocks from a number on, until the signal is aborted. Throws a CallError. */
  readonly blocks: (
    endpoint: string,
    fromNumber: bigint,
    signal: AbortSignal,
  ) => AsyncGenerator<Block | undefined, void>;
  /** How long a peer may take for the next block. */
  readonly stallMs: number;
  readonly nowMs: () => number;
  /** There is another peer that has blocks which are missing here. */
  readonly hasOther: (endpoint: string) => boolean;
  readonly onBlock: () => void;
}

/** Why a peer is left: it is slow, it does not answer, it sends nothing, or it broke its word. */
export interface Left {
  readonly cause: "slow" | "unreachable" | "silent" | "dishonest";
  readonly reason: string;
}

/**
 * Builds the function that applies what a peer has. It gives undefined when that is all applied, or when the signal is
 * aborted; otherwise why it is better to go on with another peer. It throws what is none of a peer's fault.
 */
export function createDownload({ chain, blocks, stallMs, nowMs, hasOther, onBlock }: DownloadDeps) {
  async function applyAll(
    { endpoint, head }: BookEntry,
    stream: AsyncGenerator<Block | undefined, void>,
    signal: AbortSignal,
  ): Promise<Left | undefined> {
    const promised = head!.number;
    const pace = createSlowPeerDetector(nowMs);
    for (;;) {
      const next = await pace.waitFor(within(stallMs, stream.next(), signal));
      if (signal.aborted) {
        return undefined;
      }
      if (next === "stalled") {
        return { cause: "silent", reason: `It sent no block for ${stallMs / 1000} s.` };
      }
      if (next.done === true) {
        return chain.head()! >= promised
          ? undefined
          : { cause: "silent", reason: `It has not sent block ${promised}, which it said it has.` };
      }
      if (next.value === undefined) {
        throw new RpcError("INVALID_REQUEST", "It sent a message without a block.");
      }
      await chain.apply(next.value);
      onBlock();
      if (pace.isTooSlow() && hasOther(endpoint)) {
        return { cause: "slow", reason: "It is slow, and there are others." };
      }
    }
  }

  /** Looks at the block that a peer has in the place of the newest one here: another one shows that the chain is forked. */
  async function lookAtItsOwn(endpoint: string, signal: AbortSignal): Promise<void> {
    const number = chain.head()!;
    if (number === 0n) {
      return;
    }
    const ended = new AbortController();
    try {
      const first = await within(stallMs, blocks(endpoint, number, ended.signal).next(), signal);
      if (first !== "stalled" && first.done !== true && first.value !== undefined) {
        chain.hear(first.value);
      }
    } catch {
      // The peer is left anyway.
    } finally {
      ended.abort();
    }
  }

  return async (peer: BookEntry, signal: AbortSignal): Promise<Left | undefined> => {
    const ended = new AbortController();
    try {
      return await applyAll(peer, blocks(peer.endpoint, chain.head()! + 1n, ended.signal), signal);
    } catch (error) {
      // A transient one is this node's own trouble, whatever the block is like.
      if (error instanceof RpcError && !error.kind.transient) {
        await lookAtItsOwn(peer.endpoint, signal);
        return { cause: "dishonest", reason: `It sent a block that cannot be applied. ${error.message}` };
      }
      if (error instanceof CallError) {
        return { cause: "unreachable", reason: error.message };
      }
      throw error;
    } finally {
      ended.abort();
    }
  };
}

/** What is waited for, or word that it did not come in time or that there is no use in waiting. */
async function within<T>(ms: number, awaited: Promise<T>, signal: AbortSignal): Promise<T | "stalled"> {
  awaited.catch(() => undefined);
  let stall = (): void => undefined;
  const stalled = new Promise<"stalled">((resolve) => {
    stall = () => resolve("stalled");
  });
  const timer = setTimeout(stall, signal.aborted ? 0 : ms);
  signal.addEventListener("abort", stall);
  try {
    return await Promise.race([awaited, stalled]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stall);
  }
}
