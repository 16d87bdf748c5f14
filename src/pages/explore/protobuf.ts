/**
 * Replaces the part of @bufbuild/protobuf that proofs need. The library's reflection is ten times as long as this file. The
 * build creates the tables from the same descriptors (tools/pages/message-tables.ts). The library's own reader reads the
 * bytes, and tests compare both.
 */
import { base64Decode, BinaryReader, WireType } from "@bufbuild/protobuf/wire";

/** Type of a value that is read in one piece. */
type Scalar = "string" | "bytes" | "bool" | "int32" | "uint32" | "int64" | "uint64";

/** Presence and cardinality of a field. */
type Presence = "implicit" | "optional" | "list" | "oneof";

/** Field: number, name, name in JSON, type, presence, and the name of its oneof. */
export type FieldRow = readonly [
  no: number,
  name: string,
  json: string,
  holds: Scalar | Table,
  presence: Presence,
  oneof?: string,
];

/** Fields of a message. */
export interface Table {
  readonly typeName: string;
  /** A function, since messages contain one another. */
  readonly fields: () => readonly FieldRow[];
}

type Message = Record<string, unknown>;

/** Creates a message from an object. Nested messages must be complete. */
export function create(table: Table, init: Message = {}): Message {
  const given = Object.entries(init).filter(([, value]) => value !== undefined);
  return Object.assign(blank(table), Object.fromEntries(given));
}

/** Decodes a message. Throws for invalid bytes. */
export function fromBinary(table: Table, bytes: Uint8Array): Message {
  const reader = new BinaryReader(bytes);
  return readFields(reader, table, blank(table), bytes.length);
}

/** Reads a message from JSON, ignoring unknown members. Throws for invalid JSON. */
export function fromJson(table: Table, json: unknown): Message {
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    throw new TypeError(`${table.typeName} is no object.`);
  }
  const message = blank(table);
  const given = json as Message;
  for (const row of table.fields()) {
    const [, name, jsonName, holds, presence] = row;
    const value = given[jsonName];
    if (value === undefined || value === null) {
      continue;
    }
    if (presence !== "list") {
      set(message, row, readJson(holds, value));
    } else if (Array.isArray(value)) {
      message[name] = value.map((item) => readJson(holds, item));
    } else {
      throw new TypeError(`${jsonName} is no list.`);
    }
  }
  return message;
}

const zeros: Readonly<Record<Scalar, () => unknown>> = {
  string: () => "",
  bytes: () => new Uint8Array(),
  bool: () => false,
  int32: () => 0,
  uint32: () => 0,
  int64: () => 0n,
  uint64: () => 0n,
};

function blank(table: Table): Message {
  const message: Message = { $typeName: table.typeName };
  for (const [, name, , holds, presence, oneof] of table.fields()) {
    if (oneof !== undefined) {
      message[oneof] = { case: undefined };
    } else if (presence === "list") {
      message[name] = [];
    } else if (presence === "implicit" && typeof holds === "string") {
      message[name] = zeros[holds]();
    }
  }
  return message;
}

function set(message: Message, [, name, , , , oneof]: FieldRow, value: unknown): void {
  if (oneof === undefined) {
    message[name] = value;
  } else {
    message[oneof] = { case: name, value };
  }
}

function readFields(reader: BinaryReader, table: Table, message: Message, end: number): Message {
  const rows = new Map(table.fields().map((row) => [row[0], row]));
  while (reader.pos < end) {
    const [no, wireType] = reader.tag();
    const row = rows.get(no);
    if (row === undefined) {
      reader.skip(wireType, no);
      continue;
    }
    const [, name, , holds, presence] = row;
    if (presence === "list") {
      readItems(reader, holds, wireType, message[name] as unknown[]);
    } else {
      set(message, row, readValue(reader, holds, sofar(message, row)));
    }
  }
  return message;
}

/** Returns the value so far: a message field that occurs twice is merged. */
function sofar(message: Message, [, name, , , , oneof]: FieldRow): unknown {
  if (oneof === undefined) {
    return message[name];
  }
  const { case: which, value } = message[oneof] as { case: string | undefined; value?: unknown };
  return which === name ? value : undefined;
}

function readItems(reader: BinaryReader, holds: Scalar | Table, wireType: WireType, items: unknown[]): void {
  const isPacked = wireType === WireType.LengthDelimited && typeof holds === "string" && !/string|bytes/.test(holds);
  if (!isPacked) {
    items.push(readValue(reader, holds, undefined));
    return;
  }
  const length = reader.uint32();
  const end = length + reader.pos;
  while (reader.pos < end) {
    items.push(readValue(reader, holds, undefined));
  }
}

function readValue(reader: BinaryReader, holds: Scalar | Table, before: unknown): unknown {
  if (typeof holds !== "string") {
    const length = reader.uint32();
    return readFields(reader, holds, (before as Message | undefined) ?? blank(holds), reader.pos + length);
  }
  const value = holds === "string" ? reader.string(true) : reader[holds]();
  return holds === "int64" || holds === "uint64" ? BigInt(value as string | bigint) : value;
}

function readJson(holds: Scalar | Table, value: unknown): unknown {
  if (typeof holds !== "string") {
    return fromJson(holds, value);
  }
  const isText = holds === "string" || holds === "bytes";
  if (isText ? typeof value !== "string" : holds === "bool" && typeof value !== "boolean") {
    throw new TypeError(`This is no ${holds}: ${typeof value}.`);
  }
  switch (holds) {
    case "string":
    case "bool":
      return value;
    case "bytes":
      return base64Decode(value as string);
    default:
      return readNumber(holds, value);
  }
}

const bounds = {
  int32: [-(2n ** 31n), 2n ** 31n],
  uint32: [0n, 2n ** 32n],
  int64: [-(2n ** 63n), 2n ** 63n],
  uint64: [0n, 2n ** 64n],
} as const;

function readNumber(holds: keyof typeof bounds, value: unknown): number | bigint {
  const number = typeof value === "number" || typeof value === "string" ? BigInt(value) : undefined;
  const [least, above] = bounds[holds];
  if (number === undefined || value === "" || number < least || number >= above) {
    throw new TypeError(`This is no ${holds}.`);
  }
  return holds.endsWith("64") ? number : Number(number);
}
