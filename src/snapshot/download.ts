/** Download of the parts of a snapshot from all peers that offer it. Each part is stored as soon as it arrives. */
import type { DescMessage, DescMethodServerStreaming, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { promisify } from "node:util";
import { inflate } from "node:zlib";
import { type SignedHeader, type SnapshotEntry, SnapshotService } from "../../gen/gatehouse/peer/v1/snapshot_pb.js";
import { createSerialQueue } from "../base/async/serial-queue.js";
import { Stalled, withStallTimeout } from "../base/async/stall-timeout.js";
import { sha256, toHex32 } from "../base/crypto/hash.js";
import { decodeEntries, maxChunkBytes, type SnapshotDescription, WrongSnapshot } from "./format.js";
import { maxHeaders, maxLeaves } from "./service.js";
import type { SyncState } from "./sync-store.js";

const decompress = promisify(inflate);

/** Number of chunks downloaded concurrently. */
const maxFetches = 4;
/** Weights of a header and a leaf in the progress estimate: each takes as long as this many bytes of a chunk. */
const [headerCost, leafCost] = [600, 2_000];

/** Peers of this node, as a snapshot sync uses them. */
export interface SnapshotPeers {
  /** Returns the endpoints of healthy peers. */
  list(): readonly string[];
  /** Calls a streaming method of a peer. The stream throws if the peer does not respond, or the signal is aborted. */
  stream<I extends DescMessage, O extends DescMessage>(
    endpoint: string,
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    signal: AbortSignal,
  ): AsyncIterable<MessageShape<O>>;
  /** Drops a peer that does not respond or that sent invalid data. */
  drop(endpoint: string, cause: "unreachable" | "dishonest", reason: string): void;
  /** Returns true if the error means that the peer does not respond; all other errors are local. */
  isUnanswered(error: unknown): boolean;
}

/** Destination of a snapshot sync. */
export interface SnapshotTarget {
  /** Returns the sync in progress; undefined if none was started. */
  state(): Promise<SyncState | undefined>;
  /** Checks the description of a snapshot and returns the number of its block. Throws WrongSnapshot. */
  check(description: SnapshotDescription): bigint;
  /** Returns true if a snapshot of this block is worth downloading. Not applied to a sync in progress. */
  isWorthwhile(number: bigint): boolean;
  /** Records the start of a sync with a snapshot of this block. */
  start(description: SnapshotDescription, number: bigint): Promise<void>;
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

/** Error of an invalid part from a peer. */
export class WrongPiece extends Error {
  override readonly name = "WrongPiece";
}

/** Error if no source of the snapshot is left. */
export class NoSource extends Error {}

/** Drops the peer that caused an error. Rethrows errors that no peer caused. */
export function dropCulprit(peers: SnapshotPeers, endpoint: string, error: unknown, reproach: string): void {
  if (error instanceof WrongSnapshot || error instanceof WrongPiece) {
    peers.drop(endpoint, "dishonest", `${reproach} ${error.message}`);
  } else if (error instanceof Stalled || peers.isUnanswered(error)) {
    peers.drop(endpoint, "unreachable", (error as Error).message);
  } else {
    throw error;
  }
}

/** Returns the approximate size of the download in bytes, weighted by duration. */
export function estimateBytes({ snapshot, tree }: SnapshotDescription, number: bigint): number {
  const ofChunks = snapshot.chunks.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  return Number(number) * headerCost + ofChunks + tree.leafCount * leafCost;
}

/** Download of one snapshot: its peers, its destination and its progress. */
interface DownloadDeps {
  readonly peers: SnapshotPeers;
  readonly target: SnapshotTarget;
  readonly description: SnapshotDescription;
  /** Number of the snapshot's block, which has the last header. */
  readonly number: bigint;
  /** Endpoints of the peers that offer the snapshot. */
  readonly from: readonly string[];
  /** Parts that are stored already. */
  readonly state: SyncState;
  readonly signal: AbortSignal;
  /** Called with the number of available bytes. `isNew` is false for bytes from an earlier attempt. */
  readonly advance: (bytes: number, isNew: boolean) => void;
}

/**
 * Downloads and stores the missing parts: headers in descending order, several chunks at a time, then the leaves of the
 * commitment tree.
 *
 * @throws NoSource if no peer is left; WrongSnapshot if the snapshot itself is invalid.
 */
export async function downloadParts(deps: DownloadDeps): Promise<void> {
  const { peers, target, description, number, from: offering, state, signal, advance } = deps;
  const { chunks } = description.snapshot;
  const { method } = SnapshotService;
  let sources = [...offering];
  let nextSource = 0;

  /** Runs work with one of the sources, in round-robin order. If the peer fails, drops it and retries with the next one. */
  async function withSource<T>(work: (endpoint: string, signal: AbortSignal) => Promise<T>): Promise<T> {
    for (;;) {
      const endpoint = sources[nextSource++ % Math.max(sources.length, 1)];
      if (endpoint === undefined || signal.aborted) {
        throw new NoSource("No remaining peer has the snapshot.");
      }
      const controller = new AbortController();
      try {
        return await work(endpoint, AbortSignal.any([signal, controller.signal]));
      } catch (error) {
        if (error instanceof WrongSnapshot || signal.aborted) {
          throw error;
        }
        if (sources.includes(endpoint)) {
          sources = sources.filter((one) => one !== endpoint);
          dropCulprit(peers, endpoint, error, "It sent data that does not belong to the snapshot.");
        }
      } finally {
        controller.abort();
      }
    }
  }

  async function fetchHeaders(from: number, count: number): Promise<void> {
    await withSource(async (endpoint, callSignal) => {
      const request = { fromNumber: BigInt(from), count };
      const found: SignedHeader[] = [];
      for await (const { headers } of withStallTimeout(
        peers.stream(endpoint, method.listHeaders, request, callSignal),
      )) {
        found.push(...headers);
      }
      if (found.length !== count) {
        throw new WrongPiece(`It sent ${found.length} headers instead of ${count}.`);
      }
      await target.storeHeaders(from, found);
    });
    advance(count * headerCost, true);
  }

  /** Assembles, decompresses and verifies a chunk. Throws WrongSnapshot if its content cannot be decoded. */
  async function fetchChunk(chunk: number): Promise<SnapshotEntry[]> {
    return await withSource(async (endpoint, callSignal) => {
      const request = { snapshot: description.id, chunk };
      const pieces: Uint8Array[] = [];
      let bytes = 0;
      for await (const { data } of withStallTimeout(
        peers.stream(endpoint, method.getSnapshotChunk, request, callSignal),
      )) {
        pieces.push(data);
        bytes += data.length;
        if (bytes > maxChunkBytes) {
          throw new WrongPiece(`Chunk ${chunk} is incomplete.`);
        }
      }
      const limits = { maxOutputLength: maxChunkBytes };
      const content = await decompress(Buffer.concat(pieces), limits).catch(() => undefined);
      if (content === undefined || sha256(content) !== toHex32(chunks[chunk]!.sha256)) {
        throw new WrongPiece(`Chunk ${chunk} does not have the hash in the snapshot.`);
      }
      return decodeEntries(content);
    });
  }

  async function fetchLeaves(from: number, count: number): Promise<void> {
    await withSource(async (endpoint, callSignal) => {
      const found: Uint8Array[] = [];
      for await (const { leaves } of withStallTimeout(
        peers.stream(endpoint, method.listCommitments, { from, count }, callSignal),
      )) {
        for (let offset = 0; offset < leaves.length && found.length <= count; offset += 32) {
          found.push(leaves.subarray(offset, offset + 32));
        }
      }
      await target.storeLeaves(description, from, found);
    });
    advance(count * leafCost, true);
  }

  advance((Number(number) + 1 - state.lowestHeader) * headerCost, false);
  for (let end = state.lowestHeader; end > 1; end -= maxHeaders) {
    const from = Math.max(1, end - maxHeaders);
    await fetchHeaders(from, end - from);
  }

  const missing = chunks.flatMap(({ node, sizeBytes }, i) => {
    const isStored = node.case === undefined || state.chunks.has(i);
    advance(isStored ? sizeBytes : 0, false);
    return isStored ? [] : [i];
  });
  // Chunks are stored one at a time.
  const enqueue = createSerialQueue();
  let failed: unknown;
  async function fetchNextChunks(): Promise<void> {
    for (let chunk = missing.shift(); chunk !== undefined && failed === undefined; chunk = missing.shift()) {
      try {
        const [index, entries] = [chunk, await fetchChunk(chunk)];
        await enqueue(() => target.storeChunk(description, index, entries));
        advance(chunks[chunk]!.sizeBytes, true);
      } catch (error) {
        failed ??= error;
      }
    }
  }
  await Promise.all(Array.from({ length: maxFetches }, fetchNextChunks));
  if (failed !== undefined) {
    throw failed as Error;
  }

  const { leafCount } = description.tree;
  advance(state.leafCount * leafCost, false);
  for (let from = state.leafCount; from < leafCount; from += maxLeaves) {
    await fetchLeaves(from, Math.min(maxLeaves, leafCount - from));
  }
}
