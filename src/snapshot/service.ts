/** Snapshot service for nodes that run a snapshot sync. */
import type { SnapshotService } from "../../gen/gatehouse/peer/v1/snapshot_pb.js";
import { createSerialQueue } from "../base/async/serial-queue.js";
import { invalidValue } from "../rpc/parameters.js";
import { RpcError } from "../rpc/errors.js";
import type { Implementation } from "../rpc/service.js";
import type { SnapshotStore } from "./store.js";

export interface SnapshotServiceDeps {
  /** Snapshot store; undefined if this node stores no snapshots. */
  readonly snapshotStore: Pick<SnapshotStore, "list" | "chunk"> | undefined;
  /**
   * Checks that a peer may read the entire state, including private programs.
   *
   * @throws RpcError PERMISSION_DENIED
   */
  readonly checkFollower: (identity: string | undefined) => void;
  readonly headers: (from: number, count: number) => Promise<{ header: Uint8Array; signature: Uint8Array }[]>;
  readonly leaves: (from: number, count: number) => Promise<Uint8Array[]>;
}

/** Limits of one message: bytes of a chunk, headers, and leaves. */
const messageBytes = 256 * 1024;
const messageHeaders = 256;
const messageLeaves = 4_096;
/** Limits of one request: headers, and leaves of the commitment tree. */
export const maxHeaders = 1_024;
export const maxLeaves = 16_384;

export function createSnapshotService(deps: SnapshotServiceDeps): Implementation<typeof SnapshotService> {
  const { snapshotStore, checkFollower, headers, leaves } = deps;
  // Chunks are read one at a time, which limits memory use under concurrent requests.
  const enqueue = createSerialQueue();

  return {
    async *listSnapshots(_, { caller }) {
      checkFollower(caller.identity);
      yield* await Promise.resolve((snapshotStore?.list() ?? []).map(({ bytes }) => ({ snapshot: bytes })));
    },

    async *getSnapshotChunk({ snapshot, chunk }, { caller, signal }) {
      checkFollower(caller.identity);
      const bytes = await enqueue(async () => await snapshotStore?.chunk(snapshot, chunk));
      if (bytes === undefined) {
        throw new RpcError("NOT_FOUND", "This node does not have this chunk, or no longer has it.");
      }
      for (let at = 0; at < bytes.length && !signal.aborted; at += messageBytes) {
        yield { data: bytes.subarray(at, at + messageBytes) };
      }
    },

    async *listHeaders({ fromNumber, count }, { signal }) {
      checkCount(count, maxHeaders);
      const from = Number(fromNumber);
      for (let at = 0; at < count && !signal.aborted; at += messageHeaders) {
        const messageCount = Math.min(messageHeaders, count - at);
        yield { headers: await requireAll(messageCount, headers(from + at, messageCount)) };
      }
    },

    async *listCommitments({ from, count }, { signal }) {
      checkCount(count, maxLeaves);
      for (let at = 0; at < count && !signal.aborted; at += messageLeaves) {
        const messageCount = Math.min(messageLeaves, count - at);
        yield { leaves: Buffer.concat(await requireAll(messageCount, leaves(from + at, messageCount))) };
      }
    },
  };
}

function checkCount(count: number, limit: number): void {
  if (count > limit) {
    throw invalidValue("count", `a whole number from 0 to ${limit}`, count);
  }
}

/** Returns the items, or throws NOT_FOUND unless there are as many as expected. */
async function requireAll<T>(expected: number, read: Promise<T[]>): Promise<T[]> {
  const items = await read;
  if (items.length !== expected) {
    throw new RpcError(
      "NOT_FOUND",
      "This node does not have the complete range yet; request less, or use another node.",
    );
  }
  return items;
}
