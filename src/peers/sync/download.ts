/** Downloads and applies the blocks of one peer, as long as they arrive in time and are valid. */
import type { Block } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { CallError } from "../../rpc/channel.js";
import { RpcError } from "../../rpc/errors.js";
import type { BookEntry } from "../address-book/peer.js";
import { createSlowPeerDetector } from "./slow-peer-detector.js";

/** Methods of the chain that synchronization uses. */
export interface SyncChain {
  /** Returns the number of the latest block; undefined if there is no chain. */
  head(): bigint | undefined;
  /**
   * Applies the next block.
   *
   * @throws RpcError if the block is not a valid next block.
   */
  apply(block: Block): Promise<unknown>;
  /**
   * Records the header of a block that is not applied, for the detection of forks.
   *
   * @throws RpcError if the signature is invalid.
   */
  receive(block: Block): unknown;
}

export interface DownloadDeps {
  readonly chain: SyncChain;
  /**
   * Streams a peer's blocks, starting at a number, until the signal is aborted.
   *
   * @throws CallError
   */
  readonly blocks: (
    endpoint: string,
    fromNumber: bigint,
    signal: AbortSignal,
  ) => AsyncGenerator<Block | undefined, void>;
  /** Time in milliseconds within which a peer must send the next block. */
  readonly stallMs: number;
  readonly nowMs: () => number;
  /** Returns true if another peer has blocks that this node lacks. */
  readonly hasOther: (endpoint: string) => boolean;
  readonly onBlock: () => void;
}

/** Cause for dropping a peer: it is slow, it does not respond, it sends nothing, or it sent invalid data. */
export interface PeerDrop {
  readonly cause: "slow" | "unreachable" | "silent" | "dishonest";
  readonly reason: string;
}

/**
 * Creates the function that applies the blocks of a peer. The function returns undefined once all are applied or the
 * signal is aborted; otherwise the reason to drop the peer. It throws errors that the peer did not cause.
 */
export function createDownload({ chain, blocks, stallMs, nowMs, hasOther, onBlock }: DownloadDeps) {
  async function applyAll(
    { endpoint, head }: BookEntry,
    stream: AsyncGenerator<Block | undefined, void>,
    signal: AbortSignal,
  ): Promise<PeerDrop | undefined> {
    const reportedHead = head!.number;
    const detector = createSlowPeerDetector(nowMs);
    for (;;) {
      const next = await detector.waitFor(within(stallMs, stream.next(), signal));
      if (signal.aborted) {
        return undefined;
      }
      if (next === "stalled") {
        return { cause: "silent", reason: `It sent no block for ${stallMs / 1000} s.` };
      }
      if (next.done === true) {
        return chain.head()! >= reportedHead
          ? undefined
          : { cause: "silent", reason: `It did not send block ${reportedHead}, which it reported to have.` };
      }
      if (next.value === undefined) {
        throw new RpcError("INVALID_REQUEST", "It sent a message without a block.");
      }
      await chain.apply(next.value);
      onBlock();
      if (detector.isTooSlow() && hasOther(endpoint)) {
        return { cause: "slow", reason: "It is slow, and another peer is available." };
      }
    }
  }

  /**
   * Requests the peer's block with the number of the latest block here. A different block proves that the chain is
   * forked.
   */
  async function compareLatestBlock(endpoint: string, signal: AbortSignal): Promise<void> {
    const number = chain.head()!;
    if (number === 0n) {
      return;
    }
    const controller = new AbortController();
    try {
      const first = await within(stallMs, blocks(endpoint, number, controller.signal).next(), signal);
      if (first !== "stalled" && first.done !== true && first.value !== undefined) {
        chain.receive(first.value);
      }
    } catch {
      // The peer is dropped in any case.
    } finally {
      controller.abort();
    }
  }

  return async (peer: BookEntry, signal: AbortSignal): Promise<PeerDrop | undefined> => {
    const controller = new AbortController();
    try {
      return await applyAll(peer, blocks(peer.endpoint, chain.head()! + 1n, controller.signal), signal);
    } catch (error) {
      // A transient error is caused by this node, so the block itself is not rejected.
      if (error instanceof RpcError && !error.kind.transient) {
        await compareLatestBlock(peer.endpoint, signal);
        return { cause: "dishonest", reason: `It sent an invalid block. ${error.message}` };
      }
      if (error instanceof CallError) {
        return { cause: "unreachable", reason: error.message };
      }
      throw error;
    } finally {
      controller.abort();
    }
  };
}

/** Waits for a promise. Returns "stalled" on timeout, or if the signal is aborted. */
async function within<T>(ms: number, promise: Promise<T>, signal: AbortSignal): Promise<T | "stalled"> {
  promise.catch(() => undefined);
  let resolveStalled = (): void => undefined;
  const stalled = new Promise<"stalled">((resolve) => {
    resolveStalled = () => resolve("stalled");
  });
  const timer = setTimeout(resolveStalled, signal.aborted ? 0 : ms);
  signal.addEventListener("abort", resolveStalled);
  try {
    return await Promise.race([promise, stalled]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", resolveStalled);
  }
}
