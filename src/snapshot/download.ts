/** Fetches the pieces of a snapshot, and has each stored as soon as it is there. */
import { promisify } from "node:util";
import { inflate } from "node:zlib";
import type { SignedHeader, SnapshotEntry } from "../../gen/gatehouse/peer/v1/snapshot_pb.js";
import { createSerialQueue } from "../base/async/serial-queue.js";
import { sha256, toHex32 } from "../base/crypto/hash.js";
import { decodeEntries, maxChunkBytes, type ReadSnapshot } from "./format.js";
import type { SyncState } from "./sync-store.js";
import { mostHeaders, mostLeaves } from "./service.js";
import { type SnapshotPeers, type Sources, within, WrongPiece } from "./sources.js";
import type { SnapshotTarget } from "./target.js";

const decompress = promisify(inflate);

/** Chunks that are fetched at the same time. */
const mostFetches = 4;
/** What a header and a leaf count as, in bytes, for the time that is left: they take as long as so much of a chunk. */
const [headerWeight, leafWeight] = [600, 2_000];

/** How much is to be fetched, in bytes, roughly. */
export function weigh({ snapshot: { chunks, commitmentTree } }: ReadSnapshot, number: bigint): number {
  const ofChunks = chunks.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  return Number(number) * headerWeight + ofChunks + commitmentTree!.leafCount * leafWeight;
}

/** What a fetch needs. */
export interface Fetch {
  readonly peers: SnapshotPeers;
  readonly target: SnapshotTarget;
  readonly sources: Sources;
  readonly read: ReadSnapshot;
  /** What is there already. */
  readonly state: SyncState;
  /** Hears of bytes that are there, and whether they came just now. */
  readonly advance: (bytes: number, isNew: boolean) => void;
}

/** @param number of the newest one. */
export async function fetchHeaders({ peers, target, sources, state, advance }: Fetch, number: number): Promise<void> {
  advance((number + 1 - state.lowestHeader) * headerWeight, false);
  for (let end = state.lowestHeader; end > 1;) {
    const from = Math.max(1, end - mostHeaders);
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
    advance(count * headerWeight, true);
    end = from;
  }
}

export async function fetchChunks({ peers, target, sources, read, state, advance }: Fetch): Promise<void> {
  const { chunks } = read.snapshot;
  const inTurn = createSerialQueue();
  const left = chunks.flatMap(({ node, sizeBytes }, i) => {
    const isThere = node.case === undefined || state.chunks.has(i);
    advance(isThere ? sizeBytes : 0, false);
    return isThere ? [] : [i];
  });
  let failed: unknown;
  await Promise.all(
    Array.from({ length: mostFetches }, async () => {
      for (let index = left.shift(); index !== undefined && failed === undefined; index = left.shift()) {
        const chunk = index;
        try {
          const entries = await sources.use((endpoint, signal) =>
            readChunk(peers.chunk(endpoint, read.id, chunk, signal), read, chunk),
          );
          await inTurn(() => target.storeChunk(read, chunk, entries));
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

/** What a chunk holds that comes in pieces. Throws WrongPiece. */
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
      throw new WrongPiece(`Chunk ${chunk} has no end.`);
    }
  }
  const content = await decompress(Buffer.concat(pieces), { maxOutputLength: maxChunkBytes }).catch(() => undefined);
  if (content === undefined || sha256(content) !== toHex32(snapshot.chunks[chunk]!.sha256)) {
    throw new WrongPiece(`Chunk ${chunk} is not the one that the snapshot names.`);
  }
  return decodeEntries(content);
}

export async function fetchLeaves({ peers, target, sources, read, state, advance }: Fetch): Promise<void> {
  const { leafCount } = read.snapshot.commitmentTree!;
  advance(state.leafCount * leafWeight, false);
  for (let from = state.leafCount; from < leafCount; from += mostLeaves) {
    const count = Math.min(mostLeaves, leafCount - from);
    await sources.use(async (endpoint, signal) => {
      const leaves: Uint8Array[] = [];
      for await (const some of within(peers.leaves(endpoint, from, count, signal))) {
        for (let at = 0; at < some.length && leaves.length <= count; at += 32) {
          leaves.push(some.subarray(at, at + 32));
        }
      }
      await target.storeLeaves(read, from, leaves);
    });
    advance(count * leafWeight, true);
  }
}
