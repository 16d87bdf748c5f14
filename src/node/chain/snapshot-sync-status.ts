/** Whether the state is there: while a snapshot is taken in, what the database holds is a part of it. */
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

/** Reads of the state, each of which is refused while that is not there. */
export function whenSynced<Reads extends object>(reads: Reads, joining: SnapshotSyncStatus): Reads {
  const guarded = Object.entries(reads).map(([name, read]: [string, Read]) => [
    name,
    (...given: never[]) => {
      if (joining.isRunning()) {
        throw new RpcError("STATE_NOT_READY", "The node has no state yet: it takes in a snapshot. Ask another node.");
      }
      return read(...given);
    },
  ]);
  return Object.fromEntries(guarded) as Reads;
}
