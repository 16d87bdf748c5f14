/**
 * Creation of snapshots. Entries arrive in any order and are spooled to files by the leading bits of their keys. Chunks
 * are then assembled one at a time. Memory use is a few MiB, whatever the size of the state.
 */
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { createReadStream } from "node:fs";
import { appendFile, mkdir, open, readFile, rm, stat, writeFile } from "node:fs/promises";
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
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const bits = Math.min(maxFirstBits, Math.max(0, Math.ceil(Math.log2((filesPerChunk * stateBytes) / chunkBytes))));
  const spool = createSpool(folder, bits);
  for await (const batch of entries) {
    signal.throwIfAborted();
    await spool.add(batch);
    await yieldToEventLoop();
  }
  const files = await spool.end();
  const chunks: SnapshotChunk[] = [];
  const write = createWriter({ folder, chunks, signal, chunkBytes });
  for (const file of files) {
    await write(file, bits);
  }
  if (!isSame(foldChunks(chunks), stateRoot)) {
    throw new Error("The stored state does not match the state root of the latest header.");
  }
  const bytes = toBinary(SnapshotSchema, create(SnapshotSchema, { ...rest(), chunks }));
  await writeFile(join(folder, descriptionName), bytes, { mode: privateFileMode });
  return bytes;
}

/** Creates the spool, which distributes entries to files by the leading bits of their keys. */
function createSpool(folder: string, bits: number) {
  const files = Array.from({ length: 2 ** bits }, (_, i) => join(folder, `${i}.spool`));
  const buffered = new Map<string, Buffer[]>();
  let bytes = 0;

  async function flush(): Promise<void> {
    for (const [file, parts] of buffered) {
      await appendFile(file, Buffer.concat(parts), { mode: privateFileMode });
    }
    buffered.clear();
    bytes = 0;
  }

  return {
    async add(entries: readonly Entry[]): Promise<void> {
      for (const entry of entries) {
        const { key } = entry.leaf;
        const file = files[((key[0]! << 8) | key[1]!) >> (16 - bits)]!;
        const record = encodeRecord(entry);
        const known = buffered.get(file);
        if (known === undefined) {
          buffered.set(file, [record]);
        } else {
          known.push(record);
        }
        bytes += record.length;
      }
      if (bytes >= bufferBytes) {
        await flush();
      }
    },
    async end(): Promise<readonly string[]> {
      await flush();
      return files;
    },
  };
}

/** Encodes a record of a spool file: leaf, length and entry. */
function encodeRecord({ leaf: { key, valueHash }, bytes }: Entry): Buffer {
  return Buffer.concat([key, valueHash, encodeLength(bytes.length), bytes]);
}

/** Splits a byte stream into records. */
async function* readRecords(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const piece of pieces) {
    rest = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
    for (;;) {
      const length =
        rest.length < recordHeadBytes + 4 ? Infinity : recordHeadBytes + 4 + rest.readUInt32BE(recordHeadBytes);
      if (rest.length < length) {
        break;
      }
      yield rest.subarray(0, length);
      rest = rest.subarray(length);
    }
  }
}

function decodeRecord(record: Buffer): Entry {
  return {
    leaf: { key: record.subarray(0, hashBytes), valueHash: record.subarray(hashBytes, recordHeadBytes) },
    bytes: record.subarray(recordHeadBytes + 4),
  };
}

/**
 * Creates the function that writes a spool file as one or more chunks and deletes the file. A file that is too large
 * for a chunk is split in half by the next key bit.
 */
function createWriter({
  folder,
  chunks,
  signal,
  chunkBytes,
}: {
  readonly folder: string;
  readonly chunks: SnapshotChunk[];
  readonly signal: AbortSignal;
  readonly chunkBytes: number;
}) {
  let halfCount = 0;

  async function writeChunk(content: readonly Entry[], depth: number): Promise<void> {
    const entries = content.toSorted((a, b) => Buffer.compare(a.leaf.key, b.leaf.key));
    const bytes = encodeEntries(entries);
    const node = treeNodes.nodeOfLeaves(
      entries.map(({ leaf }) => leaf),
      depth,
    );
    if (node !== undefined) {
      await writeFile(join(folder, chunkName(chunks.length)), await compress(bytes, { level: 4 }), {
        mode: privateFileMode,
      });
    }
    chunks.push(describeChunk(depth, node, bytes));
  }

  return async function write(file: string, depth: number): Promise<void> {
    signal.throwIfAborted();
    const size = await stat(file).then(
      (found) => found.size,
      () => 0,
    );
    if (size <= chunkBytes || (await hasOneRecord(file, size))) {
      const entries: Entry[] = [];
      if (size > 0) {
        for await (const record of readRecords(asStream(await readFile(file)))) {
          entries.push(decodeRecord(record));
        }
      }
      await writeChunk(entries, depth);
      await rm(file, { force: true });
      await yieldToEventLoop();
      return;
    }
    const halves = [join(folder, `${halfCount++}.half`), join(folder, `${halfCount++}.half`)] as const;
    const spool: [Buffer[], Buffer[]] = [[], []];
    const flush = async (): Promise<void> => {
      for (const side of [0, 1] as const) {
        await appendFile(halves[side], Buffer.concat(spool[side]), { mode: privateFileMode });
        spool[side] = [];
      }
    };
    let bytes = 0;
    for await (const record of readRecords(createReadStream(file, { highWaterMark: 1024 * 1024 }))) {
      spool[bitOf(record, depth)].push(record);
      bytes += record.length;
      if (bytes >= bufferBytes) {
        await flush();
        bytes = 0;
      }
    }
    await flush();
    await rm(file);
    await write(halves[0], depth + 1);
    await write(halves[1], depth + 1);
  };
}

async function hasOneRecord(path: string, size: number): Promise<boolean> {
  const file = await open(path);
  try {
    const head = Buffer.alloc(recordHeadBytes + 4);
    await file.read(head, 0, head.length, 0);
    return head.length + head.readUInt32BE(recordHeadBytes) === size;
  } finally {
    await file.close();
  }
}

async function* asStream(piece: Buffer): AsyncGenerator<Buffer, void> {
  yield await Promise.resolve(piece);
}
