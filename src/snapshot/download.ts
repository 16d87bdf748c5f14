/** Download of the parts of a snapshot; each part is stored as soon as it arrives. */
import { promisify } from "node:util";
import { inflate } from "node:zlib";
import type { SignedHeader, SnapshotEntry } from "../../gen/gatehouse/peer/v1/snapshot_pb.js";
import { createSerialQueue } from "../base/async/serial-queue.js";
import { sha256, toHex32 } from "../base/crypto/hash.js";
import { decodeEntries, maxChunkBytes, type ReadSnapshot } from "./format.js";
import type { SyncState } from "./sync-store.js";
import { maxHeaders, maxLeaves } from "./service.js";
import { type SnapshotPeers, type Sources, within, WrongPiece } from "./sources.js";
import type { SnapshotTarget } from "./target.js";

const decompress = promisify(inflate);

/** Number of chunks downloaded concurrently. */
const maxFetches = 4;
/** Weights of a header and a leaf in the progress estimate: each takes as long as this many bytes of a chunk. */
const [headerCost, leafCost] = [600, 2_000];

/** Returns the approximate size of the download in bytes, weighted by duration. */
export function estimateBytes({ snapshot: { chunks, commitmentTree } }: ReadSnapshot, number: bigint): number {
  const ofChunks = chunks.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  return Number(number) * headerCost + ofChunks + commitmentTree!.leafCount * leafCost;
}

/** Parameters of a download. */
export interface Fetch {
  readonly peers: SnapshotPeers;
  readonly target: SnapshotTarget;
  readonly sources: Sources;
  readonly read: ReadSnapshot;
  /** Parts that are stored already. */
  readonly state: SyncState;
  /** Called with the number of available bytes. `isNew` is false for bytes from an earlier attempt. */
  readonly advance: (bytes: number, isNew: boolean) => void;
}

/**
 * Downloads headers in descending order.
 *
 * @param number number of the snapshot's block, which has the last header.
 */
export async function fetchHeaders({ peers, target, sources, state, advance }: Fetch, number: number): Promise<void> {
  advance((number + 1 - state.lowestHeader) * headerCost, false);
  for (let end = state.lowestHeader; end > 1;) {
    const from = Math.max(1, end - maxHeaders);
    const count = end - from;
    await sources.use(async (endpoint, signal) => {
      const headers: SignedHeader[] = [];
      for await (const some of within(peers.headers(endpoint, from, count, signal))) {
        headers.push(...some);
      }
      if (headers.length !== count) {
        throw new WrongPiece(`It sent ${headers.length} headers instead of ${count}.`);
      }
      await target.storeHeaders(from, headers);
    });
    advance(count * headerCost, true);
    end = from;
  }
}

export async function fetchChunks({ peers, target, sources, read, state, advance }: Fetch): Promise<void> {
  const { chunks } = read.snapshot;
  const enqueue = createSerialQueue();
  const left = chunks.flatMap(({ node, sizeBytes }, i) => {
    const isThere = node.case === undefined || state.chunks.has(i);
    advance(isThere ? sizeBytes : 0, false);
    return isThere ? [] : [i];
  });
  let failed: unknown;
  await Promise.all(
    Array.from({ length: maxFetches }, async () => {
      for (let index = left.shift(); index !== undefined && failed === undefined; index = left.shift()) {
        const chunk = index;
        try {
          const entries = await sources.use((endpoint, signal) =>
            readChunk(peers.chunk(endpoint, read.id, chunk, signal), read, chunk),
          );
          await enqueue(() => target.storeChunk(read, chunk, entries));
          advance(chunks[chunk]!.sizeBytes, true);
        } catch (error) {
          failed ??= error;
        }
      }
    }),
  );
  if (failed !== undefined) {
    throw failed as Error;
  }
}

/**
 * Assembles, decompresses and verifies a chunk. Throws WrongPiece, or WrongSnapshot if its content cannot be decoded.
 */
async function readChunk(
  coming: AsyncIterable<Uint8Array>,
  { snapshot }: ReadSnapshot,
  chunk: number,
): Promise<SnapshotEntry[]> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of within(coming)) {
    pieces.push(piece);
    if ((bytes += piece.length) > maxChunkBytes) {
      throw new WrongPiece(`Chunk ${chunk} is incomplete.`);
    }
  }
  const content = await decompress(Buffer.concat(pieces), { maxOutputLength: maxChunkBytes }).catch(() => undefined);
  if (content === undefined || sha256(content) !== toHex32(snapshot.chunks[chunk]!.sha256)) {
    throw new WrongPiece(`Chunk ${chunk} does not have the hash in the snapshot.`);
  }
  return decodeEntries(content);
}

export async function fetchLeaves({ peers, target, sources, read, state, advance }: Fetch): Promise<void> {
  const { leafCount } = read.snapshot.commitmentTree!;
  advance(state.leafCount * leafCost, false);
  for (let from = state.leafCount; from < leafCount; from += maxLeaves) {
    const count = Math.min(maxLeaves, leafCount - from);
    await sources.use(async (endpoint, signal) => {
      const leaves: Uint8Array[] = [];
      for await (const some of within(peers.leaves(endpoint, from, count, signal))) {
        for (let at = 0; at < some.length && leaves.length <= count; at += 32) {
          leaves.push(some.subarray(at, at + 32));
        }
      }
      await target.storeLeaves(read, from, leaves);
    });
    advance(count * leafCost, true);
  }
}
