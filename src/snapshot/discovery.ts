/** Discovery of snapshots on peers, and selection of the snapshot to download. */
import { sha256 } from "../base/crypto/hash.js";
import { type ReadSnapshot, readSnapshot } from "./format.js";
import type { SyncState } from "./sync-store.js";
import { blame, type SnapshotPeers, within } from "./sources.js";
import type { SnapshotTarget } from "./target.js";

/** Limit on peers queried for snapshots. */
const mostAsked = 8;

/** Snapshot that peers offer. */
export interface SnapshotOffer {
  readonly read: ReadSnapshot;
  /** Number of the snapshot's block. */
  readonly number: bigint;
  /** Endpoints of the peers that offer the snapshot. */
  readonly from: readonly string[];
}

/** Dependencies of discovery. */
interface Asker {
  readonly peers: SnapshotPeers;
  readonly target: Pick<SnapshotTarget, "state" | "check" | "isWorthIt" | "begin" | "abandon">;
}

/** Queries peers for their snapshots. Returns these by ID, and the number of peers that responded. */
async function askAll({ peers, target }: Asker, signal: AbortSignal) {
  const found = new Map<string, { readonly read: ReadSnapshot; readonly number: bigint; readonly from: string[] }>();
  let answered = 0;
  const asked = peers.list().slice(0, mostAsked);
  await Promise.all(
    asked.map(async (endpoint) => {
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
        answered++;
      } catch (error) {
        blame(peers, endpoint, error, "It offers a snapshot that cannot be.");
      }
    }),
  );
  return { found, answered };
}

/**
 * Selects a snapshot and records it as started. A started snapshot is resumed; otherwise the latest one is selected. A
 * started snapshot is abandoned if peers respond, but none of them offers it. Returns undefined if no snapshot is
 * worthwhile, or if a snapshot was started and no peer responds.
 */
export async function selectSnapshot(
  asker: Asker,
  signal: AbortSignal,
): Promise<(SnapshotOffer & { readonly state: SyncState }) | undefined> {
  const { target } = asker;
  const begun = await target.state();
  const { found, answered } = await askAll(asker, signal);
  if (begun !== undefined) {
    const id = sha256(begun.snapshot);
    const known = found.get(id);
    if (known !== undefined || answered === 0) {
      return known && { ...known, state: begun };
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
  await target.begin(best.read);
  return { ...best, state: (await target.state())! };
}
