/**
 * Writes protobuf wire format into one buffer that grows and is used again. Encoding is synchronous and nothing else
 * runs meanwhile, so all encoders share a writer; what leaves it is a copy.
 */

const initialBytes = 64 * 1024;
/** A buffer that one big message made larger than this is given back. */
const keptBytes = 1024 * 1024;
/** Up to this length it is cheaper to look at every character than to ask for the length in UTF-8 first. */
const shortString = 48;

/** The writer. Lengths of nested messages are filled in when they are known: see {@link BinaryWriter.fork}. */
export class BinaryWriter {
  #buffer = Buffer.allocUnsafe(initialBytes);
  #end = 0;

  /** Forgets everything written. */
  reset(): void {
    this.#end = 0;
    if (this.#buffer.length > keptBytes) {
      this.#buffer = Buffer.allocUnsafe(initialBytes);
    }
  }

  /** A copy of everything written. */
  copy(): Buffer {
    return Buffer.from(this.#buffer.subarray(0, this.#end));
  }

  /** How much is written, to give to {@link copyFrom} later. */
  position(): number {
    return this.#end;
  }

  /** A copy of what was written since a position. */
  copyFrom(position: number): Buffer {
    return Buffer.from(this.#buffer.subarray(position, this.#end));
  }

  /** Bytes that were encoded before, as they are. */
  encoded(bytes: Buffer): void {
    this.#ensure(bytes.length);
    this.#buffer.set(bytes, this.#end);
    this.#end += bytes.length;
  }

  #ensure(moreBytes: number): void {
    if (this.#end + moreBytes > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(2 * this.#buffer.length, this.#end + moreBytes));
      this.#buffer.copy(larger, 0, 0, this.#end);
      this.#buffer = larger;
    }
  }

  /** A varint of 32 bits, taken as unsigned. */
  varint32(value: number): void {
    this.#ensure(5);
    value >>>= 0;
    while (value > 0x7f) {
      this.#buffer[this.#end++] = (value & 0x7f) | 0x80;
      value >>>= 7;
    }
    this.#buffer[this.#end++] = value;
  }

  /** A signed 32-bit integer as a varint; negative numbers take ten bytes, as the format wants. */
  int32(value: number): void {
    if (value >= 0) {
      this.varint32(value);
    } else {
      this.#varint64(value >>> 0, 0xffffffff);
    }
  }

  /** A 64-bit integer as a varint; negative ones as their two's complement. */
  varint64(value: bigint): void {
    if (value >= 0n && value <= 0x7fffffffn) {
      this.varint32(Number(value));
    } else {
      this.#varint64(Number(value & 0xffffffffn), Number((value >> 32n) & 0xffffffffn));
    }
  }

  #varint64(low: number, high: number): void {
    this.#ensure(10);
    while (high > 0) {
      this.#buffer[this.#end++] = (low & 0x7f) | 0x80;
      low = ((low >>> 7) | (high << 25)) >>> 0;
      high >>>= 7;
    }
    this.varint32(low);
  }

  fixed32(value: number): void {
    this.#ensure(4);
    this.#end = this.#buffer.writeInt32LE(value | 0, this.#end);
  }

  fixed64(value: bigint): void {
    this.#ensure(8);
    this.#end = this.#buffer.writeBigUInt64LE(BigInt.asUintN(64, value), this.#end);
  }

  float(value: number): void {
    this.#ensure(4);
    this.#end = this.#buffer.writeFloatLE(value, this.#end);
  }

  double(value: number): void {
    this.#ensure(8);
    this.#end = this.#buffer.writeDoubleLE(value, this.#end);
  }

  /** Length and bytes. */
  bytes(value: Uint8Array): void {
    this.varint32(value.length);
    this.#ensure(value.length);
    this.#buffer.set(value, this.#end);
    this.#end += value.length;
  }

  /** Length and UTF-8. Lone surrogates become U+FFFD. */
  string(value: string): void {
    if (value.length <= shortString && this.#shortAscii(value)) {
      return;
    }
    const sizeBytes = Buffer.byteLength(value);
    this.varint32(sizeBytes);
    this.#ensure(sizeBytes);
    this.#end += this.#buffer.write(value, this.#end, "utf8");
  }

  #shortAscii(value: string): boolean {
    const { length } = value;
    this.#ensure(length + 1);
    let end = this.#end;
    const buffer = this.#buffer;
    buffer[end++] = length;
    for (let i = 0; i < length; i++) {
      const unit = value.charCodeAt(i);
      if (unit > 0x7f) {
        return false;
      }
      buffer[end++] = unit;
    }
    this.#end = end;
    return true;
  }

  /** Begins a nested message; give the result to {@link join} at its end. One byte is kept for its length. */
  fork(): number {
    this.#ensure(1);
    return ++this.#end;
  }

  /** Ends a nested message: writes its length before it, moving it when one byte is not enough. */
  join(start: number): void {
    const length = this.#end - start;
    if (length < 0x80) {
      this.#buffer[start - 1] = length;
      return;
    }
    const more = length < 0x4000 ? 1 : length < 0x200000 ? 2 : length < 0x10000000 ? 3 : 4;
    this.#ensure(more);
    this.#buffer.copyWithin(start + more, start, this.#end);
    const end = this.#end + more;
    this.#end = start - 1;
    this.varint32(length);
    this.#end = end;
  }
}
