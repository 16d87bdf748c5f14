/**
 * Snapshot sync: queries peers for snapshots, selects the latest one that an authority signed, and downloads it in
 * parts from all peers that offer it. Each part is verified on arrival and stored in one transaction with the progress,
 * so an interrupted sync resumes after the last stored part. Peers that send invalid data are reported and dropped.
 */
import { createDiscovery } from "./discovery.js";
import { fetchChunks, fetchHeaders, fetchLeaves, estimateBytes } from "./download.js";
import { WrongSnapshot } from "./format.js";
import { createRateMeter } from "./rate-meter.js";
import { createSources, NoSource, type SnapshotPeers } from "./sources.js";
import type { SnapshotTarget } from "./target.js";

/** Progress of a snapshot sync. */
export interface SnapshotSyncProgress {
  readonly block: bigint;
  readonly doneBytes: number;
  readonly totalBytes: number;
  readonly bytesPerS: number;
  /** Estimated seconds left; undefined while no data arrives. */
  readonly leftS: number | undefined;
}

/**
 * Result of an attempt. `completed`: the snapshot is the state now. `none`: no peer offers a snapshot worth
 * downloading. `interrupted`: the started snapshot is currently unavailable, was invalid, or the sync was aborted.
 */
export type SnapshotSyncOutcome = "completed" | "none" | "interrupted";

export interface SnapshotSyncDeps {
  readonly peers: SnapshotPeers;
  readonly target: SnapshotTarget;
  readonly nowMs: () => number;
  /** Called with the block of the selected snapshot and the number of peers that offer it. */
  readonly onChosen: (block: bigint, peers: number, isResumed: boolean) => void;
}

/** Creates a snapshot sync. */
export function createSnapshotSync({ peers, target, nowMs, onChosen }: SnapshotSyncDeps) {
  const rate = createRateMeter(nowMs);
  const discovery = createDiscovery({ peers, target, nowMs });
  let progress: { readonly block: bigint; readonly totalBytes: number; doneBytes: number } | undefined;

  function advance(bytes: number, isNew: boolean): void {
    progress!.doneBytes += bytes;
    if (isNew) {
      rate.count(bytes);
    }
  }

  return {
    progress(): SnapshotSyncProgress | undefined {
      if (progress === undefined) {
        return undefined;
      }
      const bytesPerS = rate.perS();
      const left = Math.max(0, progress.totalBytes - progress.doneBytes);
      return { ...progress, bytesPerS, leftS: bytesPerS > 0 ? left / bytesPerS : undefined };
    },

    /** Makes one attempt. Rejects with local errors only. */
    async attempt(signal: AbortSignal): Promise<SnapshotSyncOutcome> {
      const chosen = await discovery.select(signal);
      if (chosen === undefined) {
        return (await target.state()) === undefined ? "none" : "interrupted";
      }
      const { description, number, from, state } = chosen;
      onChosen(number, from.length, state.chunks.size > 0 || state.lowestHeader <= Number(number));
      progress = { block: number, totalBytes: estimateBytes(description, number), doneBytes: 0 };
      rate.reset();
      const sources = createSources(peers, from, signal);
      const download = { peers, target, sources, description, state, advance };
      try {
        await fetchHeaders(download, Number(number));
        await fetchChunks(download);
        await fetchLeaves(download);
        await target.finish(description);
        return "completed";
      } catch (error) {
        if (error instanceof WrongSnapshot) {
          // The description itself is invalid, so every peer that offers it is dropped.
          from.forEach((endpoint) =>
            peers.drop(endpoint, "dishonest", `It offers an impossible snapshot. ${error.message}`),
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
