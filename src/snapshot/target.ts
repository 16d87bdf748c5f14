/** Destination of a snapshot sync. */
import type { SignedHeader, SnapshotEntry } from "../../gen/gatehouse/peer/v1/snapshot_pb.js";
import type { ReadSnapshot } from "./format.js";
import type { SyncState } from "./sync-store.js";

export interface SnapshotTarget {
  /** Returns the sync in progress; undefined if none was started. */
  state(): Promise<SyncState | undefined>;
  /** Checks the description of a snapshot and returns the number of its block. Throws WrongSnapshot. */
  check(read: ReadSnapshot): bigint;
  /** Returns true if a snapshot of this block is worth downloading. Not applied to a sync in progress. */
  isWorthIt(number: bigint): boolean;
  start(read: ReadSnapshot): Promise<void>;
  /** Throws WrongPiece if the headers do not precede the stored ones. */
  storeHeaders(from: number, headers: readonly SignedHeader[]): Promise<void>;
  /** Throws WrongSnapshot if the entries contradict the description. */
  storeChunk(read: ReadSnapshot, chunk: number, entries: readonly SnapshotEntry[]): Promise<void>;
  /** Throws WrongPiece, WrongSnapshot. */
  storeLeaves(read: ReadSnapshot, from: number, leaves: readonly Uint8Array[]): Promise<void>;
  /** Completes the sync: the downloaded data becomes the state. Throws WrongSnapshot. */
  finish(read: ReadSnapshot): Promise<void>;
  /** Deletes everything that was stored. */
  abandon(): Promise<void>;
}
