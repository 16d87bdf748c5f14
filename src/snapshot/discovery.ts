/** Discovery of snapshots on peers, and selection of the snapshot to download. */
import { sha256 } from "../base/crypto/hash.js";
import { type SnapshotDescription, decodeDescription } from "./format.js";
import type { SyncState } from "./sync-store.js";
import { dropCulprit, type SnapshotPeers, withStallTimeout } from "./sources.js";
import type { SnapshotTarget } from "./target.js";

/** Limit on peers queried for snapshots. */
const maxQueried = 8;

/** Snapshot that peers offer. */
export interface DiscoveredSnapshot {
  readonly description: SnapshotDescription;
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
  readonly target: Pick<SnapshotTarget, "state" | "check" | "isWorthwhile" | "abandon" | "start">;
}

/** Queries peers for their snapshots. Returns these by ID, the queried peers, and those of them that responded. */
async function queryPeers({ peers, target }: DiscoveryDeps, signal: AbortSignal) {
  const found = new Map<string, DiscoveredSnapshot & { readonly from: string[] }>();
  const responded = new Set<string>();
  const queried = peers.list().slice(0, maxQueried);
  await Promise.all(
    queried.map(async (endpoint) => {
      try {
        for await (const bytes of withStallTimeout(peers.snapshots(endpoint, signal))) {
          const description = decodeDescription(bytes);
          const known = found.get(description.id);
          if (known === undefined) {
            found.set(description.id, { description, number: target.check(description), from: [endpoint] });
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

/** Selection of a snapshot among those that peers offer. */
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

  /** Returns true if no peer has the started snapshot any more, as far as is known. */
  function isGone(queried: readonly string[], responded: ReadonlySet<string>): boolean {
    if (responded.size === 0) {
      return false;
    }
    missingSinceMs ??= nowMs();
    const mayHaveIt = sources.length > 0 ? sources : queried;
    return mayHaveIt.every((endpoint) => responded.has(endpoint)) || nowMs() - missingSinceMs >= maxMissingMs;
  }

  async function findSnapshot(
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
      .filter(({ number }) => target.isWorthwhile(number))
      .sort(
        (a, b) =>
          Number(b.number - a.number) ||
          b.from.length - a.from.length ||
          (a.description.id < b.description.id ? -1 : 1),
      )[0];
    if (best === undefined) {
      return undefined;
    }
    await target.start(best.description);
    return { ...best, state: (await target.state())! };
  }

  return {
    async select(signal) {
      const chosen = await findSnapshot(signal);
      if (chosen !== undefined) {
        sources = chosen.from;
        missingSinceMs = undefined;
      }
      return chosen;
    },
  };
}
