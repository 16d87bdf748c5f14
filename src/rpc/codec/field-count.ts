/** Limit on the fields of protobuf messages, checked before decoding, which takes more time for a field than for a byte. */
import type { DescMessage } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

/**
 * Returns true if a message and those inside of it have more than this number of fields. Each occurrence counts.
 *
 * @throws Error if the bytes are malformed.
 */
export function hasMoreFields(desc: DescMessage, bytes: Uint8Array, max: number): boolean {
  return countFields(desc, bytes, max) > max;
}

/** Counts up to `max` and one more. */
function countFields(desc: DescMessage, bytes: Uint8Array, max: number): number {
  const reader = new BinaryReader(bytes);
  let count = 0;
  let lastNumber = 0;
  let nested: DescMessage | undefined;
  while (reader.pos < reader.len && count <= max) {
    const [number, wireType] = reader.tag();
    count++;
    if (number !== lastNumber) {
      lastNumber = number;
      // No request has a map, whose entries have fields of their own.
      nested = desc.fields.find((field) => field.number === number && field.fieldKind !== "map")?.message;
    }
    if (nested !== undefined && wireType === WireType.LengthDelimited) {
      count += countFields(nested, reader.bytes(), max - count);
    } else {
      reader.skip(wireType, number);
    }
  }
  return count;
}
