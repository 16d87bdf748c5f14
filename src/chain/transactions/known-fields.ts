/** Search for unknown fields in protobuf messages, before decoding keeps each of them as an object. */
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

/**
 * Returns true if a message, or one inside of it, has a field that its type does not declare.
 *
 * @throws Error if the bytes are malformed.
 */
export function hasUnknownField(desc: DescMessage, bytes: Uint8Array): boolean {
  return hasOther(bytes, fieldsOf(desc));
}

/** Messages of fields by the number of the field; undefined for other values. */
type Fields = ReadonlyMap<number, (() => Fields) | undefined>;

const compiled = new Map<DescMessage, Fields>();

function fieldsOf(desc: DescMessage): Fields {
  let fields = compiled.get(desc);
  if (fields === undefined) {
    fields = new Map(desc.fields.map((field) => [field.number, nestedOf(field)]));
    compiled.set(desc, fields);
  }
  return fields;
}

function nestedOf(field: DescField): (() => Fields) | undefined {
  const { message } = field;
  const nested = message && (() => fieldsOf(message));
  // An entry of a map is a message with the key as field 1 and the value as field 2.
  const entry: Fields = new Map([
    [1, undefined],
    [2, nested],
  ]);
  return field.fieldKind === "map" ? () => entry : nested;
}

function hasOther(bytes: Uint8Array, fields: Fields): boolean {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag();
    if (!fields.has(number)) {
      return true;
    }
    const nested = fields.get(number);
    if (nested === undefined || wireType !== WireType.LengthDelimited) {
      reader.skip(wireType, number);
    } else if (hasOther(reader.bytes(), nested())) {
      return true;
    }
  }
  return false;
}
