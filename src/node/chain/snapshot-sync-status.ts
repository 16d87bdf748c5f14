/** Status of the snapshot sync. While it runs, the database holds only a part of the state. */
import { RpcError } from "../../rpc/errors.js";

export interface SnapshotSyncStatus {
  isRunning(): boolean;
  set(isUnderWay: boolean): void;
}

export function createSnapshotSyncStatus(begun: boolean): SnapshotSyncStatus {
  let isUnderWay = begun;
  return {
    isRunning: () => isUnderWay,
    set: (value) => void (isUnderWay = value),
  };
}

type Read = (...given: never[]) => unknown;

/** Wraps reads of the state so that each rejects with STATE_NOT_READY while a snapshot sync is running. */
export function whenSynced<Reads extends object>(reads: Reads, joining: SnapshotSyncStatus): Reads {
  const guarded = Object.entries(reads).map(([name, read]: [string, Read]) => [
    name,
    (...given: never[]) => {
      if (joining.isRunning()) {
        throw new RpcError(
          "STATE_NOT_READY",
          "The node has no state yet: it is syncing from a snapshot. Ask another node.",
        );
      }
      return read(...given);
    },
  ]);
  return Object.fromEntries(guarded) as Reads;
}
