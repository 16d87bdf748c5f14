/** Undo records of unsynced writes, as watched-disk.c writes them. */

/** Change of a file. */
export interface UndoRecord {
  readonly kind: "write" | "length";
  /** Offset of a write; for a change of length, the new length. */
  readonly offset: number;
  readonly lengthBefore: number;
  /** Overwritten bytes; shorter than the write if it extended the file. */
  readonly before: Buffer;
  /** Written bytes. */
  readonly written: Buffer;
}

const headBytes = 5 * 8;

/** Decodes records, the oldest first. An incomplete record at the end is ignored, since its write did not happen. */
export function readUndo(bytes: Buffer): UndoRecord[] {
  const records: UndoRecord[] = [];
  for (let at = 0; at + headBytes <= bytes.length;) {
    const number = (i: number): number => Number(bytes.readBigUInt64LE(at + 8 * i));
    const [kind, offset, lengthBefore, beforeBytes, writtenBytes] = [0, 1, 2, 3, 4].map(number) as [
      ...[number, number, number, number, number],
    ];
    const [from, middle] = [at + headBytes, at + headBytes + beforeBytes];
    at = middle + writtenBytes;
    if (at > bytes.length) {
      break;
    }
    const [before, written] = [bytes.subarray(from, middle), bytes.subarray(middle, at)];
    records.push({ kind: kind === 1 ? "write" : "length", offset, lengthBefore, before, written });
  }
  return records;
}
