/**
 * Writer of the protobuf wire format. All encoders share one writer with a growing, reused buffer, because encoding is
 * synchronous. Results are copies.
 */

const initialBytes = 64 * 1024;
/** Limit on the retained buffer, in bytes. A larger one is replaced on reset. */
const maxRetainedBytes = 1024 * 1024;
/** Length up to which checking every character is cheaper than computing the UTF-8 length first. */
const shortString = 48;

/** Writer for messages. Lengths of nested messages are filled in later: see {@link BinaryWriter.fork}. */
export class BinaryWriter {
  #buffer = Buffer.allocUnsafe(initialBytes);
  #end = 0;

  reset(): void {
    this.#end = 0;
    if (this.#buffer.length > maxRetainedBytes) {
      this.#buffer = Buffer.allocUnsafe(initialBytes);
    }
  }

  /** Returns the number of bytes written, as an argument for {@link copyFrom}. */
  position(): number {
    return this.#end;
  }

  /** Returns a copy of the bytes written since a position. */
  copyFrom(position: number): Buffer {
    return Buffer.from(this.#buffer.subarray(position, this.#end));
  }

  encoded(bytes: Uint8Array): void {
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

  /** Writes a 32-bit varint; the value is treated as unsigned. */
  varint32(value: number): void {
    this.#ensure(5);
    value >>>= 0;
    while (value > 0x7f) {
      this.#buffer[this.#end++] = (value & 0x7f) | 0x80;
      value >>>= 7;
    }
    this.#buffer[this.#end++] = value;
  }

  /** Writes a signed 32-bit integer as a varint. Negative numbers take ten bytes, as the format requires. */
  int32(value: number): void {
    if (value >= 0) {
      this.varint32(value);
    } else {
      this.#varint64(value >>> 0, 0xffffffff);
    }
  }

  /** Writes a 64-bit integer as a varint; negative numbers as their two's complement. */
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

  bytes(value: Uint8Array): void {
    this.varint32(value.length);
    this.encoded(value);
  }

  /** Writes the length and the text in UTF-8. Lone surrogates become U+FFFD. */
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

  /** Starts a nested message and reserves one byte for its length. Pass the result to {@link join} at its end. */
  fork(): number {
    this.#ensure(1);
    return ++this.#end;
  }

  /** Ends a nested message: writes its length before it, and moves the message if one byte is not enough. */
  join(start: number): void {
    const length = this.#end - start;
    if (length < 0x80) {
      this.#buffer[start - 1] = length;
      return;
    }
    const extraBytes = length < 0x4000 ? 1 : length < 0x200000 ? 2 : length < 0x10000000 ? 3 : 4;
    this.#ensure(extraBytes);
    this.#buffer.copyWithin(start + extraBytes, start, this.#end);
    const end = this.#end + extraBytes;
    this.#end = start - 1;
    this.varint32(length);
    this.#end = end;
  }
}
