/** Peers that a snapshot is downloaded from: their requests, and the removal of slow or dishonest peers. */
import type { SignedHeader } from "../../gen/gatehouse/peer/v1/snapshot_pb.js";
import { WrongSnapshot } from "./format.js";

/** Time after which a peer that sends nothing counts as stalled. */
const stallMs = 10_000;

/** Requests to peers. Each stream ends early when the signal is aborted, and throws if the peer does not respond. */
export interface SnapshotPeers {
  /** Returns the endpoints of healthy peers. */
  list(): readonly string[];
  snapshots(endpoint: string, signal: AbortSignal): AsyncIterable<Uint8Array>;
  chunk(endpoint: string, id: string, chunk: number, signal: AbortSignal): AsyncIterable<Uint8Array>;
  headers(endpoint: string, from: number, count: number, signal: AbortSignal): AsyncIterable<readonly SignedHeader[]>;
  leaves(endpoint: string, from: number, count: number, signal: AbortSignal): AsyncIterable<Uint8Array>;
  /** Drops a peer that does not respond or that sent invalid data. */
  drop(endpoint: string, cause: "unreachable" | "dishonest", reason: string): void;
  /** Returns true if the error means that the peer does not respond; all other errors are local. */
  isUnanswered(error: unknown): boolean;
}

/** Error of an invalid part from a peer. */
export class WrongPiece extends Error {
  override readonly name = "WrongPiece";
}

/** Error if no source of the snapshot is left. */
export class NoSource extends Error {}

/** Drops the peer that caused an error. Rethrows errors that no peer caused. */
export function dropCulprit(peers: SnapshotPeers, endpoint: string, error: unknown, reproach: string): void {
  if (error instanceof WrongSnapshot || error instanceof WrongPiece) {
    peers.drop(endpoint, "dishonest", `${reproach} ${error.message}`);
  } else if (error instanceof Stalled || peers.isUnanswered(error)) {
    peers.drop(endpoint, "unreachable", (error as Error).message);
  } else {
    throw error;
  }
}

/** Peers that offer the snapshot. */
export interface Sources {
  /**
   * Runs work with one of the peers, in round-robin order. If the peer fails, drops it and retries with the next one.
   * Throws NoSource if none is left, and WrongSnapshot if the snapshot itself is invalid.
   */
  use<T>(work: (endpoint: string, signal: AbortSignal) => Promise<T>): Promise<T>;
}

/**
 * Creates the sources.
 *
 * @param from endpoints of the peers that offer the snapshot.
 */
export function createSources(peers: SnapshotPeers, from: readonly string[], signal: AbortSignal): Sources {
  let left = [...from];
  let next = 0;
  const isAborted = (): boolean => signal.aborted;
  return {
    async use(work) {
      for (;;) {
        const endpoint = left[next++ % Math.max(left.length, 1)];
        if (endpoint === undefined || isAborted()) {
          throw new NoSource("No remaining peer has the snapshot.");
        }
        const controller = new AbortController();
        try {
          return await work(endpoint, AbortSignal.any([signal, controller.signal]));
        } catch (error) {
          if (error instanceof WrongSnapshot || isAborted()) {
            throw error;
          }
          if (left.includes(endpoint)) {
            left = left.filter((one) => one !== endpoint);
            dropCulprit(peers, endpoint, error, "It sent data that does not belong to the snapshot.");
          }
        } finally {
          controller.abort();
        }
      }
    },
  };
}

class Stalled extends Error {}

/** Yields the items of a stream. Throws Stalled if the next item takes longer than {@link stallMs}. */
export async function* withStallTimeout<T>(stream: AsyncIterable<T>): AsyncGenerator<T, void> {
  const iterator = stream[Symbol.asyncIterator]();
  for (;;) {
    let timer: NodeJS.Timeout | undefined;
    const stalled = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Stalled(`It sent no data for ${stallMs / 1_000} s.`)), stallMs);
    });
    const pending = iterator.next();
    pending.catch(() => undefined);
    try {
      const next = await Promise.race([pending, stalled]);
      if (next.done === true) {
        return;
      }
      yield next.value;
    } finally {
      clearTimeout(timer);
    }
  }
}
