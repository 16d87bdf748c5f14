/** Snapshot service for nodes that run a snapshot sync. */
import type { SnapshotService } from "../../gen/gatehouse/peer/v1/snapshot_pb.js";
import { createSerialQueue } from "../base/async/serial-queue.js";
import { invalidValue } from "../rpc/parameters.js";
import { RpcError } from "../rpc/errors.js";
import type { Caller, Implementation } from "../rpc/service.js";
import type { SnapshotStore } from "./store.js";

export interface SnapshotServiceDeps {
  /** Snapshot store; undefined if this node stores no snapshots. */
  readonly snapshotStore: Pick<SnapshotStore, "list" | "chunk"> | undefined;
  /** Returns true if a peer may read the entire state, including private programs. */
  readonly mayFollow: (identity: string | undefined) => boolean;
  readonly headers: (from: number, count: number) => Promise<{ header: Uint8Array; signature: Uint8Array }[]>;
  readonly leaves: (from: number, count: number) => Promise<Uint8Array[]>;
}

/** Limits of one message: bytes of a chunk, and headers. */
const pieceBytes = 256 * 1024;
const messageHeaders = 256;
export const maxHeaders = 1_024;
export const maxLeaves = 16_384;
const messageLeaves = 4_096;

export function createSnapshotService(deps: SnapshotServiceDeps): Implementation<typeof SnapshotService> {
  const { snapshotStore, mayFollow, headers, leaves } = deps;
  // Chunks are read one at a time, which limits memory use under concurrent requests.
  const enqueue = createSerialQueue();

  function checkCaller({ identity }: Caller): void {
    if (!mayFollow(identity)) {
      throw new RpcError("PERMISSION_DENIED", "This node sends its state to listed followers only.");
    }
  }

  return {
    async *listSnapshots(_, { caller }) {
      checkCaller(caller);
      yield* await Promise.resolve((snapshotStore?.list() ?? []).map(({ bytes }) => ({ snapshot: bytes })));
    },

    async *getSnapshotChunk({ snapshot, chunk }, { caller, signal }) {
      checkCaller(caller);
      const bytes = await enqueue(async () => await snapshotStore?.chunk(snapshot, chunk));
      if (bytes === undefined) {
        throw new RpcError("NOT_FOUND", "This node does not have this chunk, or no longer has it.");
      }
      for (let at = 0; at < bytes.length && !signal.aborted; at += pieceBytes) {
        yield { data: bytes.subarray(at, at + pieceBytes) };
      }
    },

    async *listHeaders({ fromNumber, count }, { signal }) {
      checkCount(count, maxHeaders);
      const from = Number(fromNumber);
      for (let at = 0; at < count && !signal.aborted; at += messageHeaders) {
        const expected = Math.min(messageHeaders, count - at);
        yield { headers: await readAll(expected, headers(from + at, expected)) };
      }
    },

    async *listCommitments({ from, count }, { signal }) {
      checkCount(count, maxLeaves);
      for (let at = 0; at < count && !signal.aborted; at += messageLeaves) {
        const expected = Math.min(messageLeaves, count - at);
        yield { leaves: Buffer.concat(await readAll(expected, leaves(from + at, expected))) };
      }
    },
  };
}

function checkCount(count: number, limit: number): void {
  if (count > limit) {
    throw invalidValue("count", `a whole number from 0 to ${limit}`, count);
  }
}

async function readAll<T>(expected: number, read: Promise<T[]>): Promise<T[]> {
  const found = await read;
  if (found.length !== expected) {
    throw new RpcError("NOT_FOUND", "This node does not have the whole range yet; request less, or use another node.");
  }
  return found;
}
