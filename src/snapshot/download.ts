/** Download of the parts of a snapshot; each part is stored as soon as it arrives. */
import { promisify } from "node:util";
import { inflate } from "node:zlib";
import type { SignedHeader, SnapshotEntry } from "../../gen/gatehouse/peer/v1/snapshot_pb.js";
import { createSerialQueue } from "../base/async/serial-queue.js";
import { sha256, toHex32 } from "../base/crypto/hash.js";
import { decodeEntries, maxChunkBytes, type SnapshotDescription } from "./format.js";
import type { SyncState } from "./sync-store.js";
import { maxHeaders, maxLeaves } from "./service.js";
import { type SnapshotPeers, type Sources, withStallTimeout, WrongPiece } from "./sources.js";
import type { SnapshotTarget } from "./target.js";

const decompress = promisify(inflate);

/** Number of chunks downloaded concurrently. */
const maxFetches = 4;
/** Weights of a header and a leaf in the progress estimate: each takes as long as this many bytes of a chunk. */
const [headerCost, leafCost] = [600, 2_000];

/** Returns the approximate size of the download in bytes, weighted by duration. */
export function estimateBytes({ snapshot: { chunks, commitmentTree } }: SnapshotDescription, number: bigint): number {
  const ofChunks = chunks.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  return Number(number) * headerCost + ofChunks + commitmentTree!.leafCount * leafCost;
}

/** Download of one snapshot: its peers, its destination and its progress. */
export interface Download {
  readonly peers: SnapshotPeers;
  readonly target: SnapshotTarget;
  readonly sources: Sources;
  readonly description: SnapshotDescription;
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
export async function fetchHeaders(
  { peers, target, sources, state, advance }: Download,
  number: number,
): Promise<void> {
  advance((number + 1 - state.lowestHeader) * headerCost, false);
  for (let end = state.lowestHeader; end > 1;) {
    const from = Math.max(1, end - maxHeaders);
    const count = end - from;
    await sources.use(async (endpoint, signal) => {
      const headers: SignedHeader[] = [];
      for await (const batch of withStallTimeout(peers.headers(endpoint, from, count, signal))) {
        headers.push(...batch);
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

/** Downloads the missing chunks, several at a time. Stores them one at a time. */
export async function fetchChunks({ peers, target, sources, description, state, advance }: Download): Promise<void> {
  const { chunks } = description.snapshot;
  const enqueue = createSerialQueue();
  const missing = chunks.flatMap(({ node, sizeBytes }, i) => {
    const isStored = node.case === undefined || state.chunks.has(i);
    advance(isStored ? sizeBytes : 0, false);
    return isStored ? [] : [i];
  });
  let failed: unknown;
  await Promise.all(
    Array.from({ length: maxFetches }, async () => {
      for (let index = missing.shift(); index !== undefined && failed === undefined; index = missing.shift()) {
        const chunk = index;
        try {
          const entries = await sources.use((endpoint, signal) =>
            readChunk(peers.chunk(endpoint, description.id, chunk, signal), description, chunk),
          );
          await enqueue(() => target.storeChunk(description, chunk, entries));
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
  stream: AsyncIterable<Uint8Array>,
  { snapshot }: SnapshotDescription,
  chunk: number,
): Promise<SnapshotEntry[]> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of withStallTimeout(stream)) {
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

/** Downloads the missing leaves of the commitment tree in ascending order. */
export async function fetchLeaves({ peers, target, sources, description, state, advance }: Download): Promise<void> {
  const { leafCount } = description.snapshot.commitmentTree!;
  advance(state.leafCount * leafCost, false);
  for (let from = state.leafCount; from < leafCount; from += maxLeaves) {
    const count = Math.min(maxLeaves, leafCount - from);
    await sources.use(async (endpoint, signal) => {
      const leaves: Uint8Array[] = [];
      for await (const batch of withStallTimeout(peers.leaves(endpoint, from, count, signal))) {
        for (let offset = 0; offset < batch.length && leaves.length <= count; offset += 32) {
          leaves.push(batch.subarray(offset, offset + 32));
        }
      }
      await target.storeLeaves(description, from, leaves);
    });
    advance(count * leafCost, true);
  }
}
