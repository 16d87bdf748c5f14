/** Destination of a snapshot sync. */
import type { SignedHeader, SnapshotEntry } from "../../gen/gatehouse/peer/v1/snapshot_pb.js";
import type { SnapshotDescription } from "./format.js";
import type { SyncState } from "./sync-store.js";

export interface SnapshotTarget {
  /** Returns the sync in progress; undefined if none was started. */
  state(): Promise<SyncState | undefined>;
  /** Checks the description of a snapshot and returns the number of its block. Throws WrongSnapshot. */
  check(description: SnapshotDescription): bigint;
  /** Returns true if a snapshot of this block is worth downloading. Not applied to a sync in progress. */
  isWorthwhile(number: bigint): boolean;
  /** Records the start of a sync. */
  start(description: SnapshotDescription): Promise<void>;
  /** Throws WrongPiece if the headers do not precede the stored ones. */
  storeHeaders(from: number, headers: readonly SignedHeader[]): Promise<void>;
  /** Throws WrongSnapshot if the entries contradict the description. */
  storeChunk(description: SnapshotDescription, chunk: number, entries: readonly SnapshotEntry[]): Promise<void>;
  /** Throws WrongPiece, WrongSnapshot. */
  storeLeaves(description: SnapshotDescription, from: number, leaves: readonly Uint8Array[]): Promise<void>;
  /** Completes the sync: the downloaded data becomes the state. Throws WrongSnapshot. */
  finish(description: SnapshotDescription): Promise<void>;
  /** Deletes everything that was stored. */
  abandon(): Promise<void>;
}
