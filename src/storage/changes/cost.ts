/** Cost of a row without its text, in bytes. */
export const rowBytes = 128;

/**
 * Counter for the cost of an operation, in bytes, like gas. It is the sum of
 *
 * - all text that the operation reads, writes or deletes, in bytes of UTF-8, and
 * - {@link rowBytes} for each database row that it reads, inserts, changes or deletes.
 *
 * An operation on a small document costs a few times its size, because its text is read and written in full. An
 * operation on a large document costs the fields and chunks that it reads or changes. The cost depends only on the
 * history of the program, so it is the same on every node and with every database.
 */
export class CostCounter {
  bytes = 0;

  /** Adds a text that was read or changed, given as the text or as its size in bytes. */
  addText(text: string | number): void {
    this.bytes += typeof text === "number" ? text : Buffer.byteLength(text);
  }

  addRows(count: number): void {
    this.bytes += count * rowBytes;
  }

  /** Adds a row with a text that was read or changed. */
  addRow(text: string): void {
    this.addRows(1);
    this.addText(text);
  }
}
