/**
 * Takes in a snapshot: asks peers which they have, chooses the newest that an authority has signed, and fetches it piece
 * by piece from all that have it. Each piece is checked when it comes, and stored together with the word that it is, so
 * that whatever ends this, the next start goes on behind the last piece. Who sends what is not right is named and left.
 */
import { promisify } from "node:util";
import { inflate } from "node:zlib";
import type { SignedHeader, SnapshotEntry } from "../../gen/gatehouse/peer/v1/snapshot_pb.js";
import { createOneAtATime } from "../base/one-at-a-time.js";
import { sha256, toHex32 } from "../base/hash.js";
import { decodeEntries, maxChunkBytes, type ReadSnapshot, readSnapshot, WrongSnapshot } from "./format.js";
import type { JoinState } from "./join-store.js";
import { createPace } from "./pace.js";
import { mostHeaders } from "./service.js";

const decompress = promisify(inflate);

/** Chunks that are fetched at the same time. */
const mostFetches = 4;
/** Peers that are asked which snapshots they have. */
const mostAsked = 8;
/** Leaves of the commitment tree that are fetched at a time. */
const partLeaves = 16_384;
/** How long a peer may send nothing. */
const stallMs = 10_000;
/** What a header and a leaf count as, in bytes, for the time that is left: they take as long as so much of a chunk. */
const [headerWeight, leafWeight] = [600, 2_000];

/** What is asked of a peer. Each ends early when the signal is aborted, and throws where the peer does not answer. */
export interface SnapshotPeers {
  /** Endpoints of those that are believed. */
  list(): readonly string[];
  snapshots(endpoint: string, signal: AbortSignal): AsyncIterable<Uint8Array>;
  chunk(endpoint: string, id: string, chunk: number, signal: AbortSignal): AsyncIterable<Uint8Array>;
  headers(endpoint: string, from: number, count: number, signal: AbortSignal): AsyncIterable<readonly SignedHeader[]>;
  leaves(endpoint: string, from: number, count: number, signal: AbortSignal): AsyncIterable<Uint8Array>;
  /** A peer is left: it does not answer, or it sent what is not right. */
  leave(endpoint: string, cause: "unreachable" | "dishonest", reason: string): void;
  /** Whether an error is that a peer does not answer; whatever else is thrown is this node's own trouble. */
  isUnanswered(error: unknown): boolean;
}

/** A refusal of what a peer sent. */
export class WrongPiece extends Error {
  override readonly name = "WrongPiece";
}

/** Where a snapshot is put. */
export interface SnapshotTarget {
  /** What was begun and has not ended. */
  state(): Promise<JoinState | undefined>;
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

/** How far it is. */
export interface JoinProgress {
  readonly block: bigint;
  readonly doneBytes: number;
  readonly totalBytes: number;
  readonly bytesPerS: number;
  /** Undefined while nothing comes. */
  readonly leftS: number | undefined;
}

/** How an attempt ended: it is in, nobody has one, or whoever has it does not answer for now. */
export type JoinOutcome = "joined" | "none" | "interrupted";

export interface JoinParts {
  readonly peers: SnapshotPeers;
  readonly target: SnapshotTarget;
  readonly nowMs: () => number;
  readonly onChosen: (block: bigint, peers: number, resumed: boolean) => void;
}

/** Nobody is left to ask. */
class NoSource extends Error {}

/** Builds the function that makes one attempt. */
export function createJoin({ peers, target, nowMs, onChosen }: JoinParts) {
  const pace = createPace(nowMs);
  let progress: { readonly block: bigint; readonly totalBytes: number; doneBytes: number } | undefined;

  /** @param isNew it came just now. */
  function advance(bytes: number, isNew = true): void {
    progress!.doneBytes += bytes;
    if (isNew) {
      pace.count(bytes);
    }
  }

  /** Snapshots that peers offer, by their names, and who offers them. */
  async function askAll(signal: AbortSignal) {
    const found = new Map<string, { readonly read: ReadSnapshot; readonly number: bigint; readonly from: string[] }>();
    let answered = 0;
    const asked = peers.list().slice(0, mostAsked);
    await Promise.all(
      asked.map(async (endpoint) => {
        try {
          for await (const bytes of within(peers.snapshots(endpoint, signal))) {
            const read = readSnapshot(bytes);
            const known = found.get(read.id);
            if (known === undefined) {
              found.set(read.id, { read, number: target.check(read), from: [endpoint] });
            } else {
              known.from.push(endpoint);
            }
          }
          answered++;
        } catch (error) {
          blame(endpoint, error, "It offers a snapshot that cannot be.");
        }
      }),
    );
    return { found, answered };
  }

  /** Leaves a peer for what it did. Throws what is none of its fault. */
  function blame(endpoint: string, error: unknown, what: string): void {
    if (error instanceof WrongSnapshot || error instanceof WrongPiece) {
      peers.leave(endpoint, "dishonest", `${what} ${error.message}`);
    } else if (error instanceof Stalled || peers.isUnanswered(error)) {
      peers.leave(endpoint, "unreachable", (error as Error).message);
    } else {
      throw error;
    }
  }

  async function choose(signal: AbortSignal) {
    const begun = await target.state();
    const { found, answered } = await askAll(signal);
    if (begun !== undefined) {
      const id = sha256(begun.snapshot);
      const known = found.get(id);
      if (known !== undefined || answered === 0) {
        return known && { ...known, state: begun };
      }
      await target.abandon();
    }
    const best = [...found.values()]
      .filter(({ number }) => target.isWorthIt(number))
      .sort(
        (a, b) => Number(b.number - a.number) || b.from.length - a.from.length || (a.read.id < b.read.id ? -1 : 1),
      )[0];
    if (best === undefined) {
      return undefined;
    }
    await target.begin(best.read);
    return { ...best, state: (await target.state())! };
  }

  return {
    progress(): JoinProgress | undefined {
      if (progress === undefined) {
        return undefined;
      }
      const bytesPerS = pace.perS();
      const left = Math.max(0, progress.totalBytes - progress.doneBytes);
      return { ...progress, bytesPerS, leftS: bytesPerS > 0 ? left / bytesPerS : undefined };
    },

    /** Makes one attempt. Rejects with what is this node's own trouble. */
    async attempt(signal: AbortSignal): Promise<JoinOutcome> {
      const chosen = await choose(signal);
      if (chosen === undefined) {
        return (await target.state()) === undefined ? "none" : "interrupted";
      }
      const { read, number, from, state } = chosen;
      onChosen(number, from.length, state.chunks.size > 0 || state.lowestHeader <= Number(number));
      progress = { block: number, totalBytes: weigh(read, number), doneBytes: 0 };
      pace.reset();
      const sources = createSources(from, blame, signal);
      try {
        await fetchHeaders(state, Number(number), sources);
        await fetchChunks(read, state, sources);
        await fetchLeaves(read, state, sources);
        await target.finish(read);
        return "joined";
      } catch (error) {
        if (error instanceof WrongSnapshot) {
          // What it names cannot be had of anybody.
          from.forEach((endpoint) =>
            peers.leave(endpoint, "dishonest", `It offers a snapshot that cannot be. ${error.message}`),
          );
          await target.abandon();
          return "interrupted";
        }
        if (error instanceof NoSource || signal.aborted) {
          return "interrupted";
        }
        throw error;
      } finally {
        progress = undefined;
      }
    },
  };

  async function fetchHeaders(state: JoinState, number: number, sources: Sources): Promise<void> {
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
      advance(count * headerWeight);
      end = from;
    }
  }

  async function fetchChunks(read: ReadSnapshot, state: JoinState, sources: Sources): Promise<void> {
    const { chunks } = read.snapshot;
    const inTurn = createOneAtATime();
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
            const entries = await sources.use((endpoint, signal) => fetchChunk(read, chunk, endpoint, signal));
            await inTurn(() => target.storeChunk(read, chunk, entries));
            advance(chunks[chunk]!.sizeBytes);
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

  async function fetchChunk(
    { id, snapshot }: ReadSnapshot,
    chunk: number,
    endpoint: string,
    signal: AbortSignal,
  ): Promise<SnapshotEntry[]> {
    const pieces: Uint8Array[] = [];
    let bytes = 0;
    for await (const piece of within(peers.chunk(endpoint, id, chunk, signal))) {
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

  async function fetchLeaves(read: ReadSnapshot, state: JoinState, sources: Sources): Promise<void> {
    const { leafCount } = read.snapshot.commitmentTree!;
    advance(state.leafCount * leafWeight, false);
    for (let from = state.leafCount; from < leafCount; from += partLeaves) {
      const count = Math.min(partLeaves, leafCount - from);
      await sources.use(async (endpoint, signal) => {
        const leaves: Uint8Array[] = [];
        for await (const some of within(peers.leaves(endpoint, from, count, signal))) {
          for (let at = 0; at < some.length && leaves.length <= count; at += 32) {
            leaves.push(some.subarray(at, at + 32));
          }
        }
        await target.storeLeaves(read, from, leaves);
      });
      advance(count * leafWeight);
    }
  }
}

function weigh({ snapshot: { chunks, commitmentTree } }: ReadSnapshot, number: bigint): number {
  const ofChunks = chunks.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  return Number(number) * headerWeight + ofChunks + commitmentTree!.leafCount * leafWeight;
}

/** Those that have the snapshot. */
interface Sources {
  /** Has one of them do something; where that is not right, another one. Throws NoSource when none is left. */
  use<T>(work: (endpoint: string, signal: AbortSignal) => Promise<T>): Promise<T>;
}

function createSources(
  from: readonly string[],
  blame: (endpoint: string, error: unknown, what: string) => void,
  signal: AbortSignal,
): Sources {
  let left = [...from];
  let turn = 0;
  const isAborted = (): boolean => signal.aborted;
  return {
    async use(work) {
      for (;;) {
        const endpoint = left[turn++ % Math.max(left.length, 1)];
        if (endpoint === undefined || isAborted()) {
          throw new NoSource("No peer is left that has the snapshot.");
        }
        const ended = new AbortController();
        try {
          return await work(endpoint, AbortSignal.any([signal, ended.signal]));
        } catch (error) {
          if (error instanceof WrongSnapshot || isAborted()) {
            throw error;
          }
          if (left.includes(endpoint)) {
            left = left.filter((one) => one !== endpoint);
            blame(endpoint, error, "It sent what is no part of the snapshot.");
          }
        } finally {
          ended.abort();
        }
      }
    },
  };
}

class Stalled extends Error {}

/** What comes, as long as each comes in time. */
async function* within<T>(coming: AsyncIterable<T>): AsyncGenerator<T, void> {
  const iterator = coming[Symbol.asyncIterator]();
  for (;;) {
    let timer: NodeJS.Timeout | undefined;
    const stalled = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Stalled(`It sent nothing for ${stallMs / 1_000} s.`)), stallMs);
    });
    const asked = iterator.next();
    asked.catch(() => undefined);
    try {
      const next = await Promise.race([asked, stalled]);
      if (next.done === true) {
        return;
      }
      yield next.value;
    } finally {
      clearTimeout(timer);
    }
  }
}
