/**
 * Creation of snapshots. Entries arrive in any order and are spooled to files by the leading bits of their keys. Chunks
 * are then assembled one at a time. Memory use is a few MiB, whatever the size of the state.
 */
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { createReadStream } from "node:fs";
import { appendFile, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { deflate } from "node:zlib";
import {
  type Snapshot,
  type SnapshotChunk,
  type SnapshotCommitmentTreeSchema,
  SnapshotSchema,
} from "../../gen/gatehouse/peer/v1/snapshot_pb.js";
import { privateFileMode } from "../base/files/private-files.js";
import { yieldToEventLoop } from "../base/async/yielding.js";
import { bitOf, hashBytes, isSame } from "../tree/hashes.js";
import { treeNodes } from "../tree/node-hashes.js";
import { describeChunk, encodeEntries, encodeLength, type Entry, foldChunks, targetChunkBytes } from "./format.js";

const compress = promisify(deflate);

/** Size of the buffer that is flushed to the spool files. */
const bufferBytes = 8 * 1024 * 1024;
/** Limit on the key bits that select the initial spool file. */
const maxFirstBits = 10;
/** Spool files for each full chunk; files average a quarter of a chunk, so few of them have to be split. */
const filesPerChunk = 4;
/** Size of the leaf at the start of a record: its key and its value hash. */
const recordHeadBytes = 2 * hashBytes;

/** File name of the description. */
export const descriptionName = "snapshot";
export const chunkName = (index: number): string => `${index}.chunk`;

export interface SnapshotBuildDeps {
  /** Folder that is created for the snapshot. */
  readonly folder: string;
  /** Approximate size of the entire state. */
  readonly stateBytes: number;
  readonly entries: AsyncIterable<readonly Entry[]>;
  /** Returns the remaining fields of the description; called once all entries were read. */
  readonly rest: () => Pick<Snapshot, "header" | "signature" | "programCount"> & {
    readonly commitmentTree: MessageInitShape<typeof SnapshotCommitmentTreeSchema>;
  };
  /** Root of the state according to the header. */
  readonly stateRoot: Uint8Array;
  readonly signal: AbortSignal;
  /** Size above which a chunk with more than one leaf is split. */
  readonly chunkBytes?: number;
}

/** Creates a snapshot and returns its description. Rejects if the entries do not match the state root of the header. */
export async function buildSnapshot(deps: SnapshotBuildDeps): Promise<Uint8Array> {
  const { folder, stateBytes, entries, rest, stateRoot, signal, chunkBytes = targetChunkBytes } = deps;
  const chunks: SnapshotChunk[] = [];

  async function* allRecords(): AsyncGenerator<Buffer[], void> {
    for await (const batch of entries) {
      signal.throwIfAborted();
      yield batch.map(encodeRecord);
      await yieldToEventLoop();
    }
  }

  /**
   * Writes a spool file as one or more chunks, and deletes the file. A file that is too large for a chunk is split in
   * half by the next key bit.
   */
  async function writeChunks({ path, bytes, count }: SpoolFile, depth: number): Promise<void> {
    signal.throwIfAborted();
    if (bytes > chunkBytes && count > 1) {
      const halves = [emptyFile(`${path}0`), emptyFile(`${path}1`)];
      await distribute(readRecords(path), halves, (record) => bitOf(record, depth));
      await rm(path);
      for (const half of halves) {
        await writeChunks(half, depth + 1);
      }
      return;
    }
    const content: Entry[] = [];
    if (count > 0) {
      for await (const records of readRecords(path)) {
        content.push(...records.map(decodeRecord));
      }
    }
    await writeChunk(content, depth);
    await rm(path, { force: true });
    await yieldToEventLoop();
  }

  async function writeChunk(content: readonly Entry[], depth: number): Promise<void> {
    const sorted = content.toSorted((a, b) => Buffer.compare(a.leaf.key, b.leaf.key));
    const bytes = encodeEntries(sorted);
    const leaves = sorted.map(({ leaf }) => leaf);
    const node = treeNodes.nodeOfLeaves(leaves, depth);
    if (node !== undefined) {
      const compressed = await compress(bytes, { level: 4 });
      await writeFile(join(folder, chunkName(chunks.length)), compressed, { mode: privateFileMode });
    }
    chunks.push(describeChunk(depth, node, bytes));
  }

  await mkdir(folder, { recursive: true, mode: 0o700 });
  const bits = Math.min(maxFirstBits, Math.max(0, Math.ceil(Math.log2((filesPerChunk * stateBytes) / chunkBytes))));
  const files = Array.from({ length: 2 ** bits }, (_, i) => emptyFile(join(folder, `${i}.spool`)));
  await distribute(allRecords(), files, (record) => record.readUInt16BE() >> (16 - bits));
  for (const file of files) {
    await writeChunks(file, bits);
  }
  if (!isSame(foldChunks(chunks), stateRoot)) {
    throw new Error("The stored state does not match the state root of the latest header.");
  }
  const bytes = toBinary(SnapshotSchema, create(SnapshotSchema, { ...rest(), chunks }));
  await writeFile(join(folder, descriptionName), bytes, { mode: privateFileMode });
  return bytes;
}

/** File with records: leaf, length and entry. It exists once it has one. */
interface SpoolFile {
  readonly path: string;
  bytes: number;
  /** Number of records. */
  count: number;
}

const emptyFile = (path: string): SpoolFile => ({ path, bytes: 0, count: 0 });

/** Distributes records to files. */
async function distribute(
  batches: AsyncIterable<readonly Buffer[]>,
  files: readonly SpoolFile[],
  indexOf: (record: Buffer) => number,
): Promise<void> {
  const buffered = new Map<SpoolFile, Buffer[]>();
  let bytes = 0;

  async function flush(): Promise<void> {
    for (const [{ path }, records] of buffered) {
      await appendFile(path, Buffer.concat(records), { mode: privateFileMode });
    }
    buffered.clear();
    bytes = 0;
  }

  for await (const records of batches) {
    for (const record of records) {
      const file = files[indexOf(record)]!;
      const known = buffered.get(file) ?? [];
      known.push(record);
      buffered.set(file, known);
      file.bytes += record.length;
      file.count++;
      bytes += record.length;
    }
    if (bytes >= bufferBytes) {
      await flush();
    }
  }
  await flush();
}

function encodeRecord({ leaf: { key, valueHash }, bytes }: Entry): Buffer {
  return Buffer.concat([key, valueHash, encodeLength(bytes.length), bytes]);
}

function decodeRecord(record: Buffer): Entry {
  return {
    leaf: { key: record.subarray(0, hashBytes), valueHash: record.subarray(hashBytes, recordHeadBytes) },
    bytes: record.subarray(recordHeadBytes + 4),
  };
}

/** Reads the records of a file. */
async function* readRecords(path: string): AsyncGenerator<Buffer[], void> {
  let rest: Buffer = Buffer.alloc(0);
  const lengthOf = (bytes: Buffer): number =>
    bytes.length < recordHeadBytes + 4 ? Infinity : recordHeadBytes + 4 + bytes.readUInt32BE(recordHeadBytes);
  for await (const piece of createReadStream(path, { highWaterMark: 1024 * 1024 }) as AsyncIterable<Buffer>) {
    rest = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
    const records: Buffer[] = [];
    for (let length = lengthOf(rest); rest.length >= length; length = lengthOf(rest)) {
      records.push(rest.subarray(0, length));
      rest = rest.subarray(length);
    }
    yield records;
  }
}
