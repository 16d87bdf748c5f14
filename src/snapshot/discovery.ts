/** Discovery of snapshots on peers, and selection of the snapshot to download. */
import { sha256 } from "../base/crypto/hash.js";
import { type ReadSnapshot, readSnapshot } from "./format.js";
import type { SyncState } from "./sync-store.js";
import { dropCulprit, type SnapshotPeers, within } from "./sources.js";
import type { SnapshotTarget } from "./target.js";

/** Limit on peers queried for snapshots. */
const maxQueried = 8;

/** Snapshot that peers offer. */
export interface DiscoveredSnapshot {
  readonly read: ReadSnapshot;
  /** Number of the snapshot's block. */
  readonly number: bigint;
  /** Endpoints of the peers that offer the snapshot. */
  readonly from: readonly string[];
}

/**
 * Time in milliseconds for which a started snapshot that no peer offers is kept because peers that may have it do not
 * respond.
 */
const maxMissingMs = 10 * 60_000;

/** Dependencies of discovery. */
export interface DiscoveryDeps {
  readonly peers: SnapshotPeers;
  readonly nowMs: () => number;
  readonly target: Pick<SnapshotTarget, "state" | "check" | "isWorthIt" | "abandon" | "start">;
}

/** Queries peers for their snapshots. Returns these by ID, and the peers that responded and that did not. */
async function queryPeers({ peers, target }: DiscoveryDeps, signal: AbortSignal) {
  const found = new Map<string, { readonly read: ReadSnapshot; readonly number: bigint; readonly from: string[] }>();
  const responded = new Set<string>();
  const queried = peers.list().slice(0, maxQueried);
  await Promise.all(
    queried.map(async (endpoint) => {
      try {
        for await (const bytes of within(peers.snapshots(endpoint, signal))) {
          const read = readSnapshot(bytes);
          const known = found.get(read.id);
          if (known === undefined) {
            found.set(read.id, { read, number: target.check(read), from: [endpoint] });
          } else {
            known.from.push(endpoint);
          }
        }
        responded.add(endpoint);
      } catch (error) {
        dropCulprit(peers, endpoint, error, "It offers an impossible snapshot.");
      }
    }),
  );
  return { found, queried, responded };
}

export interface SnapshotDiscovery {
  /**
   * Selects a snapshot and records it as started. A started snapshot is resumed; otherwise the latest one is selected.
   * A started snapshot is abandoned if peers respond, but none of them offers it. While peers that may have it do not
   * respond, it is kept for up to {@link maxMissingMs}. Returns undefined if no snapshot is worthwhile, or if the
   * started one is kept although no peer offers it.
   */
  select(signal: AbortSignal): Promise<(DiscoveredSnapshot & { readonly state: SyncState }) | undefined>;
}

export function createDiscovery(deps: DiscoveryDeps): SnapshotDiscovery {
  const { target, nowMs } = deps;
  /** Peers that offered the started snapshot most recently; empty after a restart. */
  let sources: readonly string[] = [];
  /** Time of the first response without the started snapshot since a peer offered it. */
  let missingSinceMs: number | undefined;

  /** Returns true if no peer has the started snapshot, as far as is known. */
  function isGone(queried: readonly string[], responded: ReadonlySet<string>): boolean {
    if (responded.size === 0) {
      return false;
    }
    missingSinceMs ??= nowMs();
    const mayHaveIt = sources.length > 0 ? sources : queried;
    return mayHaveIt.every((endpoint) => responded.has(endpoint)) || nowMs() - missingSinceMs >= maxMissingMs;
  }

  async function choose(
    signal: AbortSignal,
  ): Promise<(DiscoveredSnapshot & { readonly state: SyncState }) | undefined> {
    const started = await target.state();
    const { found, queried, responded } = await queryPeers(deps, signal);
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
    const best = [...found.values()]
      .filter(({ number }) => target.isWorthIt(number))
      .sort(
        (a, b) => Number(b.number - a.number) || b.from.length - a.from.length || (a.read.id < b.read.id ? -1 : 1),
      )[0];
    if (best === undefined) {
      return undefined;
    }
    await target.start(best.read);
    return { ...best, state: (await target.state())! };
  }

  return {
    async select(signal) {
      const chosen = await choose(signal);
      if (chosen !== undefined) {
        sources = chosen.from;
        missingSinceMs = undefined;
      }
      return chosen;
    },
  };
}
