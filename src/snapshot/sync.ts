/**
 * Takes in a snapshot: asks peers which they have, chooses the newest that an authority has signed, and fetches it piece
 * by piece from all that have it. Each piece is checked when it comes, and stored together with the word that it is, so
 * that whatever ends this, the next start goes on behind the last piece. Who sends what is not right is named and left.
 */
import { selectSnapshot } from "./discovery.js";
import { fetchChunks, fetchHeaders, fetchLeaves, weigh } from "./download.js";
import { WrongSnapshot } from "./format.js";
import { createPace } from "./pace.js";
import { createSources, NoSource, type SnapshotPeers } from "./sources.js";
import type { SnapshotTarget } from "./target.js";

/** How far it is. */
export interface SnapshotSyncProgress {
  readonly block: bigint;
  readonly doneBytes: number;
  readonly totalBytes: number;
  readonly bytesPerS: number;
  /** Undefined while nothing comes. */
  readonly leftS: number | undefined;
}

/** How an attempt ended: it is in, nobody has one, or whoever has it does not answer for now. */
export type SnapshotSyncOutcome = "joined" | "none" | "interrupted";

export interface JoinDeps {
  readonly peers: SnapshotPeers;
  readonly target: SnapshotTarget;
  readonly nowMs: () => number;
  readonly onChosen: (block: bigint, peers: number, resumed: boolean) => void;
}

/** Builds the function that makes one attempt. */
export function createSnapshotSync({ peers, target, nowMs, onChosen }: JoinDeps) {
  const pace = createPace(nowMs);
  let progress: { readonly block: bigint; readonly totalBytes: number; doneBytes: number } | undefined;

  function advance(bytes: number, isNew: boolean): void {
    progress!.doneBytes += bytes;
    if (isNew) {
      pace.count(bytes);
    }
  }

  return {
    progress(): SnapshotSyncProgress | undefined {
      if (progress === undefined) {
        return undefined;
      }
      const bytesPerS = pace.perS();
      const left = Math.max(0, progress.totalBytes - progress.doneBytes);
      return { ...progress, bytesPerS, leftS: bytesPerS > 0 ? left / bytesPerS : undefined };
    },

    /** Makes one attempt. Rejects with what is this node's own trouble. */
    async attempt(signal: AbortSignal): Promise<SnapshotSyncOutcome> {
      const chosen = await selectSnapshot({ peers, target }, signal);
      if (chosen === undefined) {
        return (await target.state()) === undefined ? "none" : "interrupted";
      }
      const { read, number, from, state } = chosen;
      onChosen(number, from.length, state.chunks.size > 0 || state.lowestHeader <= Number(number));
      progress = { block: number, totalBytes: weigh(read, number), doneBytes: 0 };
      pace.reset();
      const fetch = { peers, target, sources: createSources(peers, from, signal), read, state, advance };
      try {
        await fetchHeaders(fetch, Number(number));
        await fetchChunks(fetch);
        await fetchLeaves(fetch);
        await target.finish(read);
        return "joined";
      } catch (error) {
        if (error instanceof WrongSnapshot) {
          // What it names cannot be had of anybody.
          from.forEach((endpoint) =>
            peers.leave(endpoint, "dishonest", `It offers a snapshot that cannot be. ${error.message}`),
          );
          await target.abandon();
          return "interrupted";
        }
        if (error instanceof NoSource || signal.aborted) {
          return "interrupted";
        }
        throw error;
      } finally {
        progress = undefined;
      }
    },
  };
}
