/**
 * Decodes a storage program of a snapshot for the database. Everything that its leaf does not cover is computed or
 * checked. The rows of a large document may be split in many ways, but only between items and in ascending order.
 */
import { z } from "zod";
import type { SnapshotField, SnapshotProgram } from "../../../gen/gatehouse/peer/v1/snapshot_pb.js";
import type { ChunkColumns, FieldColumns } from "../../db/rows/row-hashes.js";
import type { AccessRule } from "../programs/access.js";
import { itemsOf } from "../documents/document.js";
import { eachField, maxTextBytes, minPartsBytes } from "../documents/document-parts.js";
import { plainField } from "./document-writing.js";
import { typeOfJson } from "../documents/json-text.js";
import type { ProgramRow } from "../programs/stored-program.js";

/** Error for snapshot data that is not a valid program. */
export class InvalidProgram extends Error {
  override readonly name = "InvalidProgram";
}

export interface RestoredProgram {
  /** Position in the order in which programs were created, from 1. */
  readonly index: number;
  /** Row of the program, with empty checksums. */
  readonly row: ProgramRow;
  /** Access rule; undefined if the program was deleted. */
  readonly access: AccessRule | undefined;
  readonly text: string | undefined;
  /** Text in the document's own row: the full document, or the text after the last field. */
  readonly data: string | undefined;
  readonly fields: readonly FieldColumns[];
  readonly chunks: readonly ChunkColumns[];
}

const noHashes = { entry_hash: "", rest_hash: "" };
const noAccess = JSON.stringify({ allowed: [], blacklisted: [], groups: {} });

const keys = z.array(z.string());
const accessText = z.strictObject({
  allowed: keys,
  blacklisted: keys,
  groups: z.record(z.string(), z.strictObject({ members: keys, permissions: z.array(z.enum(["read", "write"])) })),
});

/** @throws InvalidProgram */
export function readProgram(program: SnapshotProgram): RestoredProgram {
  const { storageAddress: address, place: index, updatedMs, deleted } = program;
  if (!/^stor-[0-9a-f]{40}$/.test(address) || index < 1 || index > 2 ** 31 - 1) {
    throw new InvalidProgram("A program of the snapshot has no address or no position.");
  }
  const common = { address, updated_ms: Number(updatedMs), deleted, ...noHashes };
  if (deleted) {
    // The leaf of a deleted program covers no other data, so the rest is ignored.
    const row: ProgramRow = {
      ...common,
      ...{ owner: "", name: "", encoding: "json", mode: "owner", size_bytes: 0, created_ms: 0 },
      ...{ type: "null", access: noAccess, metadata: null, in_parts: false, blinding: "" },
    };
    return { index, row, access: undefined, text: undefined, data: undefined, fields: [], chunks: [] };
  }
  const { owner, name, data: text, metadata = null, layout } = program;
  const access = readAccess(program);
  const encoding = program.encoding === "binary" ? "binary" : "json";
  const type = text === undefined ? "null" : encoding === "binary" ? "binary" : typeOfJson(text);
  const bytes = text === undefined ? 0 : encoding === "binary" ? binaryBytes(text) : Buffer.byteLength(text);
  const row: ProgramRow = {
    ...common,
    ...{ owner, name, encoding, mode: access.mode, size_bytes: bytes, created_ms: Number(program.createdMs) },
    ...{ type, access: program.access, metadata, in_parts: layout !== undefined },
    blinding: Buffer.from(program.blinding).toString("hex"),
  };
  const mayBeText = type !== "object" || bytes <= maxTextBytes;
  if (layout === undefined) {
    if (!mayBeText) {
      throw new InvalidProgram("A large document has no layout.");
    }
    return { index, row, access, text, data: text, fields: plainFields(address, type, text), chunks: [] };
  }
  if (type !== "object" || bytes <= minPartsBytes) {
    throw new InvalidProgram("A document that is stored as one text has a layout.");
  }
  return { index, row, access, text, ...chunkField(address, text!, layout.fields) };
}

function readAccess({ owner, mode, access }: SnapshotProgram): AccessRule {
  let json: unknown;
  try {
    json = JSON.parse(access);
  } catch {
    throw new InvalidProgram("The access rule of a program is not JSON.");
  }
  const parsed = accessText.safeParse(json);
  if (!parsed.success || JSON.stringify(json) !== access || !["public", "owner", "restricted"].includes(mode)) {
    throw new InvalidProgram("The access rule of a program is not valid.");
  }
  return { owner, mode: mode as AccessRule["mode"], ...(json as z.infer<typeof accessText>) };
}

/** Returns the number of bytes that a JSON string of base64 encodes. */
function binaryBytes(text: string): number {
  return Buffer.byteLength(text.slice(1, -1), "base64");
}

function plainFields(address: string, type: string, text: string | undefined): FieldColumns[] {
  const fields: FieldColumns[] = [];
  if (type === "object" && text !== undefined) {
    for (const { name, value } of eachField(text)) {
      const { type: fieldType, before, value: stored, sizeBytes } = plainField(value);
      const columns = { type: fieldType, text_before: before, value: stored, size_bytes: sizeBytes, items: null };
      fields.push({ address, position: fields.length, name_json: JSON.stringify(name), ...columns });
    }
  }
  return fields;
}

/** Splits a document into fields and chunks, as its layout describes. */
function chunkField(
  address: string,
  text: string,
  layout: readonly SnapshotField[],
): Pick<RestoredProgram, "data" | "fields" | "chunks"> {
  const fields: FieldColumns[] = [];
  const chunks: ChunkColumns[] = [];
  const parts = eachField(text);
  let next = parts.next();
  let last = -1;
  for (const { position, pieces } of layout) {
    if (next.done === true || position <= last || position > 2 ** 31 - 1) {
      throw new InvalidProgram("The layout of a document does not match the document.");
    }
    last = position;
    const { name, before, value } = next.value;
    const chunked = chunkValue({ address, field: position }, value, pieces);
    chunks.push(...chunked.chunks);
    fields.push({
      ...{ address, position, name_json: JSON.stringify(name), type: typeOfJson(value), text_before: before },
      ...{ size_bytes: Buffer.byteLength(value), value: chunked.rest, items: chunked.items },
    });
    next = parts.next();
  }
  if (next.done !== true) {
    throw new InvalidProgram("The layout of a document does not match the document.");
  }
  return { data: next.value, fields, chunks };
}

/** Splits a value into chunks of the lengths in its layout. Rejects chunks that do not end with an item. */
function chunkValue(
  key: Pick<ChunkColumns, "address" | "field">,
  value: string,
  pieces: SnapshotField["pieces"],
): { readonly chunks: readonly ChunkColumns[]; readonly rest: string; readonly items: number | null } {
  if (pieces.length === 0) {
    return { chunks: [], rest: value, items: null };
  }
  const isArray = typeOfJson(value) === "array";
  const ends = isArray ? itemsOf(value).map(({ end }) => end) : [value.length];
  const chunks: ChunkColumns[] = [];
  let [start, item, last] = [0, 0, 0n];
  for (const { position, length } of pieces) {
    const end = start + length;
    const first = item;
    while (item < ends.length && ends[item]! <= end) {
      item++;
    }
    if (item === first || ends[item - 1] !== end || position <= last || position > BigInt(Number.MAX_SAFE_INTEGER)) {
      throw new InvalidProgram("The layout of a document splits an item.");
    }
    const text = value.slice(start, end);
    const items = isArray ? item - first : 0;
    chunks.push({ ...key, position: Number(position), items, size_bytes: Buffer.byteLength(text), text });
    [start, last] = [end, position];
  }
  if (item !== ends.length) {
    throw new InvalidProgram("The layout of a document omits items.");
  }
  return { chunks, rest: value.slice(start), items: isArray ? ends.length : 0 };
}
