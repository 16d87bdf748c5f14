/** What a file was before it was changed and not synced, as the library beside it writes it. */

/** A change. */
export interface UndoRecord {
  readonly kind: "write" | "length";
  /** Where; of a change of length, the new one. */
  readonly offset: number;
  readonly lengthBefore: number;
  /** What was there before, as far as there was something. */
  readonly before: Buffer;
  /** What was written. */
  readonly written: Buffer;
}

const headBytes = 5 * 8;

/** Reads records, the oldest first; what is cut off at the end tells of a change that was not made. */
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
