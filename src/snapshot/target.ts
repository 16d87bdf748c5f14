/** Where a snapshot is put. */
import type { SignedHeader, SnapshotEntry } from "../../gen/gatehouse/peer/v1/snapshot_pb.js";
import type { ReadSnapshot } from "./format.js";
import type { SyncState } from "./sync-store.js";

export interface SnapshotTarget {
  /** What was begun and has not ended. */
  state(): Promise<SyncState | undefined>;
  /** Looks at a description. Gives the number of its block. Throws WrongSnapshot. */
  check(read: ReadSnapshot): bigint;
  /** Whether one of this block is to be taken in; one that was begun is, anyway. */
  isWorthIt(number: bigint): boolean;
  begin(read: ReadSnapshot): Promise<void>;
  /** Throws WrongPiece for headers that do not come before those that are stored. */
  storeHeaders(from: number, headers: readonly SignedHeader[]): Promise<void>;
  /** Throws WrongSnapshot for what the description names and cannot be. */
  storeChunk(read: ReadSnapshot, chunk: number, entries: readonly SnapshotEntry[]): Promise<void>;
  /** Throws WrongPiece, WrongSnapshot. */
  storeLeaves(read: ReadSnapshot, from: number, leaves: readonly Uint8Array[]): Promise<void>;
  /** All is there: it becomes the state. Throws WrongSnapshot. */
  finish(read: ReadSnapshot): Promise<void>;
  /** Takes out what was stored. */
  abandon(): Promise<void>;
}
