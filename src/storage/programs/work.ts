/**
 * What an operation costs: the bytes that it touches. Counted is
 *
 * - text that it reads, writes or takes away, in bytes of UTF-8, and
 * - {@link rowBytes} for each row that it reads, inserts, changes or deletes in the database.
 *
 * So an operation on a small document costs a few times the document, whose text is read and written as a whole; one on
 * a large document costs the fields and chunks that it meets. The number depends on what was done to the program before
 * and on nothing else: it is the same on every node, whatever its database.
 */

/** What a row counts, beside its text. */
export const rowBytes = 128;

/** Counts. */
export interface Work {
  /** So far. */
  readonly bytes: number;
  /** Text was touched: itself, or how many bytes it has. */
  touch(text: string | number): void;
  /** Rows were touched. */
  touchRows(count: number): void;
}

/** Begins to count. */
export function createWork(): Work {
  let bytes = 0;
  return {
    get bytes() {
      return bytes;
    },
    touch(text) {
      bytes += typeof text === "number" ? text : Buffer.byteLength(text);
    },
    touchRows(count) {
      bytes += count * rowBytes;
    },
  };
}
