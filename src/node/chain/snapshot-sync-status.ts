/** Status of the snapshot sync. While it runs, the database holds only a part of the state. */
import { RpcError } from "../../rpc/errors.js";

export interface SnapshotSyncStatus {
  isRunning(): boolean;
  set(isRunning: boolean): void;
}

/** Creates the status. The argument is true if a sync was started earlier and is incomplete. */
export function createSnapshotSyncStatus(isRunning: boolean): SnapshotSyncStatus {
  return {
    isRunning: () => isRunning,
    set: (value) => void (isRunning = value),
  };
}

type Read = (...query: never[]) => unknown;

/** Wraps reads of the state so that each rejects with STATE_NOT_READY while a snapshot sync is running. */
export function whenSynced<Reads extends object>(reads: Reads, syncStatus: SnapshotSyncStatus): Reads {
  const guarded = Object.entries(reads).map(([name, read]: [string, Read]) => [
    name,
    (...query: never[]) => {
      if (syncStatus.isRunning()) {
        throw new RpcError(
          "STATE_NOT_READY",
          "The node has no state yet: it is syncing from a snapshot. Use another node.",
        );
      }
      return read(...query);
    },
  ]);
  return Object.fromEntries(guarded) as Reads;
}
