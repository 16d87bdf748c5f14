/** The peers that a snapshot comes from: what is asked of them, and how those are left that do not give what is right. */
import type { SignedHeader } from "../../gen/gatehouse/peer/v1/snapshot_pb.js";
import { WrongSnapshot } from "./format.js";

/** How long a peer may send nothing. */
const stallMs = 10_000;

/** What is asked of a peer. Each ends early when the signal is aborted, and throws where the peer does not answer. */
export interface SnapshotPeers {
  /** Endpoints of those that are believed. */
  list(): readonly string[];
  snapshots(endpoint: string, signal: AbortSignal): AsyncIterable<Uint8Array>;
  chunk(endpoint: string, id: string, chunk: number, signal: AbortSignal): AsyncIterable<Uint8Array>;
  headers(endpoint: string, from: number, count: number, signal: AbortSignal): AsyncIterable<readonly SignedHeader[]>;
  leaves(endpoint: string, from: number, count: number, signal: AbortSignal): AsyncIterable<Uint8Array>;
  /** A peer is left: it does not answer, or it sent what is not right. */
  leave(endpoint: string, cause: "unreachable" | "dishonest", reason: string): void;
  /** Whether an error is that a peer does not answer; whatever else is thrown is this node's own trouble. */
  isUnanswered(error: unknown): boolean;
}

/** A refusal of what a peer sent. */
export class WrongPiece extends Error {
  override readonly name = "WrongPiece";
}

/** Nobody is left to ask. */
export class NoSource extends Error {}

/** Leaves a peer for what it did. Throws what is none of its fault. */
export function blame(peers: SnapshotPeers, endpoint: string, error: unknown, what: string): void {
  if (error instanceof WrongSnapshot || error instanceof WrongPiece) {
    peers.leave(endpoint, "dishonest", `${what} ${error.message}`);
  } else if (error instanceof Stalled || peers.isUnanswered(error)) {
    peers.leave(endpoint, "unreachable", (error as Error).message);
  } else {
    throw error;
  }
}

/** Those that have the snapshot. */
export interface Sources {
  /** Has one of them do something; where that is not right, another one. Throws NoSource when none is left. */
  use<T>(work: (endpoint: string, signal: AbortSignal) => Promise<T>): Promise<T>;
}

/** @param from endpoints of those that have it. */
export function createSources(peers: SnapshotPeers, from: readonly string[], signal: AbortSignal): Sources {
  let left = [...from];
  let turn = 0;
  const isAborted = (): boolean => signal.aborted;
  return {
    async use(work) {
      for (;;) {
        const endpoint = left[turn++ % Math.max(left.length, 1)];
        if (endpoint === undefined || isAborted()) {
          throw new NoSource("No peer is left that has the snapshot.");
        }
        const ended = new AbortController();
        try {
          return await work(endpoint, AbortSignal.any([signal, ended.signal]));
        } catch (error) {
          if (error instanceof WrongSnapshot || isAborted()) {
            throw error;
          }
          if (left.includes(endpoint)) {
            left = left.filter((one) => one !== endpoint);
            blame(peers, endpoint, error, "It sent what is no part of the snapshot.");
          }
        } finally {
          ended.abort();
        }
      }
    },
  };
}

class Stalled extends Error {}

/** What comes, as long as each comes in time. */
export async function* within<T>(coming: AsyncIterable<T>): AsyncGenerator<T, void> {
  const iterator = coming[Symbol.asyncIterator]();
  for (;;) {
    let timer: NodeJS.Timeout | undefined;
    const stalled = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Stalled(`It sent nothing for ${stallMs / 1_000} s.`)), stallMs);
    });
    const asked = iterator.next();
    asked.catch(() => undefined);
    try {
      const next = await Promise.race([asked, stalled]);
      if (next.done === true) {
        return;
      }
      yield next.value;
    } finally {
      clearTimeout(timer);
    }
  }
}
