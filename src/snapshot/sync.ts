/**
 * Snapshot sync: queries peers for snapshots, selects the latest one that an authority signed, and downloads it in
 * parts from all peers that offer it. Each part is verified on arrival and stored in one transaction with the progress,
 * so an interrupted sync resumes after the last stored part. Peers that send invalid data are reported and dropped.
 */
import { SnapshotService } from "../../gen/gatehouse/peer/v1/snapshot_pb.js";
import { withStallTimeout } from "../base/async/stall-timeout.js";
import { sha256 } from "../base/crypto/hash.js";
import { createRateMeter } from "../base/rate-meter.js";
import {
  downloadParts,
  dropCulprit,
  estimateBytes,
  NoSource,
  type SnapshotPeers,
  type SnapshotTarget,
} from "./download.js";
import { decodeDescription, type SnapshotDescription, WrongSnapshot } from "./format.js";

/** Limit on peers queried for snapshots. */
const maxQueried = 8;
/**
 * Time in milliseconds for which a started snapshot that no peer offers is kept because peers that may have it do not
 * respond.
 */
const maxMissingMs = 10 * 60_000;
/** Seconds over which the rate of bytes is averaged. */
const rateWindowS = 10;

/** Snapshot that peers offer, with the number of its block and the endpoints of these peers. */
interface DiscoveredSnapshot {
  readonly description: SnapshotDescription;
  readonly number: bigint;
  readonly from: string[];
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
  const rate = createRateMeter(nowMs, rateWindowS);
  let progress: { readonly block: bigint; readonly total: number; done: number } | undefined;
  /** Peers that offered the started snapshot most recently; empty after a restart. */
  let lastSources: readonly string[] = [];
  /** Time of the first response without the started snapshot since a peer offered it. */
  let missingSinceMs: number | undefined;

  /** Queries peers for their snapshots. Returns these by ID, the queried peers, and those of them that responded. */
  async function queryPeers(signal: AbortSignal) {
    const found = new Map<string, DiscoveredSnapshot>();
    const responded = new Set<string>();
    const queried = peers.list().slice(0, maxQueried);
    async function query(endpoint: string): Promise<void> {
      const messages = peers.stream(endpoint, SnapshotService.method.listSnapshots, {}, signal);
      for await (const { snapshot } of withStallTimeout(messages)) {
        const description = decodeDescription(snapshot);
        const known = found.get(description.id);
        if (known === undefined) {
          found.set(description.id, { description, number: target.check(description), from: [endpoint] });
        } else {
          known.from.push(endpoint);
        }
      }
      responded.add(endpoint);
    }
    await Promise.all(
      queried.map((endpoint) =>
        query(endpoint).catch((error: unknown) =>
          dropCulprit(peers, endpoint, error, "It offers an impossible snapshot."),
        ),
      ),
    );
    return { found, queried, responded };
  }

  /**
   * Returns true if no peer has the started snapshot any more, as far as is known. While peers that may have it do not
   * respond, that is false for up to {@link maxMissingMs}.
   */
  function isGone(queried: readonly string[], responded: ReadonlySet<string>): boolean {
    if (responded.size === 0) {
      return false;
    }
    missingSinceMs ??= nowMs();
    const mayHaveIt = lastSources.length > 0 ? lastSources : queried;
    return mayHaveIt.every((endpoint) => responded.has(endpoint)) || nowMs() - missingSinceMs >= maxMissingMs;
  }

  /**
   * Selects a snapshot and records it as started. A started snapshot is resumed, or abandoned if it is gone; otherwise
   * the latest one that most peers offer is selected. Returns undefined if no snapshot is worthwhile, or if the started
   * one is kept although no peer offers it.
   */
  async function select(signal: AbortSignal) {
    const started = await target.state();
    const { found, queried, responded } = await queryPeers(signal);
    if (started !== undefined) {
      const known = found.get(sha256(started.snapshot));
      if (known !== undefined) {
        return { ...known, state: started };
      }
      if (!isGone(queried, responded)) {
        return undefined;
      }
      await target.abandon();
    }
    const [best] = [...found.values()]
      .filter(({ number }) => target.isWorthwhile(number))
      .sort(
        (a, b) =>
          Number(b.number - a.number) ||
          b.from.length - a.from.length ||
          (a.description.id < b.description.id ? -1 : 1),
      );
    if (best === undefined) {
      return undefined;
    }
    await target.start(best.description, best.number);
    return { ...best, state: (await target.state())! };
  }

  function advance(bytes: number, isNew: boolean): void {
    progress!.done += bytes;
    if (isNew) {
      rate.count(bytes);
    }
  }

  return {
    /** Returns the progress; undefined while nothing is downloaded. */
    progress() {
      if (progress === undefined) {
        return undefined;
      }
      const { block, total, done } = progress;
      const bytesPerS = Math.round(rate.perS());
      return {
        ...{ block, doneBytes: BigInt(done), totalBytes: BigInt(total), bytesPerS },
        /** Estimated seconds left; undefined while no data arrives. */
        leftS: bytesPerS > 0 ? Math.ceil(Math.max(0, total - done) / bytesPerS) : undefined,
      };
    },

    /** Makes one attempt. Rejects with local errors only. */
    async attempt(signal: AbortSignal): Promise<SnapshotSyncOutcome> {
      const chosen = await select(signal);
      if (chosen === undefined) {
        return (await target.state()) === undefined ? "none" : "interrupted";
      }
      const { description, number, from, state } = chosen;
      lastSources = from;
      missingSinceMs = undefined;
      onChosen(number, from.length, state.chunks.size > 0 || state.lowestHeader <= Number(number));
      progress = { block: number, total: estimateBytes(description, number), done: 0 };
      rate.reset();
      try {
        await downloadParts({ ...chosen, peers, target, signal, advance });
        await target.finish(description);
        return "completed";
      } catch (error) {
        if (error instanceof WrongSnapshot) {
          // The description itself is invalid, so every peer that offers it is dropped.
          from.forEach((endpoint) => dropCulprit(peers, endpoint, error, "It offers an impossible snapshot."));
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
