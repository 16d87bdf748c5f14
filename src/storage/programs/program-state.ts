/** Hashes programs for the state tree, as docs/proofs.md specifies. */
import { create, toBinary } from "@bufbuild/protobuf";
import { ProgramRecordSchema } from "../../../gen/gatehouse/state/v1/state_pb.js";
import { ProgramEncoding } from "../../../gen/gatehouse/storage/v1/storage_pb.js";
import { runYielding } from "../../base/async/yielding.js";
import { createLruCache } from "../../base/caches/lru-cache.js";
import { buildTree, type ChangedTree } from "../../tree/change.js";
import { stateHashes } from "../../tree/node-hashes.js";
import { pageTexts } from "../../tree/page-store.js";
import type { Leaf } from "../../tree/path.js";
import { type FieldParts, zeroHash, type ObjectParts, type ProgramParts } from "../../tree/state-format.js";
import { toAccessControl } from "./access.js";
import { eachField, maxTextBytes } from "../documents/document-parts.js";
import type { BuildDocument } from "./programs.js";
import { type ProgramRow, toRecord } from "./stored-program.js";

/** Parts of a document that its hash covers. */
export type DocumentParts =
  | { readonly kind: "none" }
  | { readonly kind: "text"; readonly text: string }
  | ({ readonly kind: "object" } & ObjectParts);

/** Returns the leaf of a program, deleted or not. */
export function programLeaf(row: ProgramRow, document: DocumentParts): Leaf {
  return { key: stateHashes.programKey(row.address), valueHash: hashProgram(partsOf(row), document) };
}

/** Returns the hash that a program's leaf stores. */
export function hashProgram(parts: Omit<ProgramParts, "documentHash">, document: DocumentParts): Uint8Array {
  return stateHashes.program({ ...parts, documentHash: hashDocument(document) });
}

export function partsOf(row: ProgramRow): Omit<ProgramParts, "documentHash"> {
  const isDeleted = Boolean(row.deleted);
  return {
    blinding: isDeleted ? zeroHash : Buffer.from(row.blinding, "hex"),
    record: recordOf(row),
    metadataHash: isDeleted || row.metadata === null ? zeroHash : stateHashes.text(row.metadata),
  };
}

/** Encodes the ProgramRecord of a program. A deleted program has only its address and the time of the deletion. */
function recordOf(row: ProgramRow): Uint8Array {
  const { address: storageAddress, updated_ms } = row;
  const updatedMs = BigInt(updated_ms);
  if (row.deleted) {
    return toBinary(ProgramRecordSchema, create(ProgramRecordSchema, { storageAddress, deleted: true, updatedMs }));
  }
  const { name: programName, encoding, access, sizeBytes, createdMs } = toRecord(row);
  const { mode, allowed, blacklisted, groups } = toAccessControl(access);
  const record = create(ProgramRecordSchema, {
    storageAddress,
    owner: access.owner,
    programName,
    encoding: encoding === "json" ? ProgramEncoding.JSON : ProgramEncoding.BINARY,
    sizeBytes,
    createdMs: BigInt(createdMs),
    updatedMs,
    mode,
    allowed: [...allowed],
    blacklisted: [...blacklisted],
    groups: Object.entries(groups)
      .map(([name, { members, permissions }]) => ({ name, group: { members: [...members], permissions } }))
      .sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name))),
  });
  return toBinary(ProgramRecordSchema, record);
}

export function hashDocument(document: DocumentParts): Uint8Array {
  switch (document.kind) {
    case "none":
      return zeroHash;
    case "text":
      return stateHashes.plainDocument(document.text);
    case "object":
      return stateHashes.objectDocument(document);
  }
}

export function fieldKey(name: string): Uint8Array {
  return stateHashes.fieldKey(JSON.stringify(name));
}

/** Limit on the cached keys of field names, of a few hundred bytes each. */
const maxCachedNames = 2_000;
/** Maximum length of a field name whose key is cached, in UTF-16 code units. */
const maxCachedNameLength = 64;
const cachedKeys = createLruCache<Uint8Array>(maxCachedNames);

/** Returns the key of a field in a small document, from a cache. Small documents often share field names. */
function cachedFieldKey(name: string): Uint8Array {
  let key = cachedKeys.get(name);
  if (key === undefined) {
    // A copy, because the hash is a view of a larger pooled buffer, which the cache would otherwise retain.
    key = new Uint8Array(fieldKey(name));
    if (name.length <= maxCachedNameLength) {
      cachedKeys.set(name, key);
    }
  }
  return key;
}

/** Fields of an object as leaves, and the other hashed parts of the object. */
export interface ObjectFields extends Omit<ObjectParts, "fieldsRoot"> {
  readonly leaves: readonly Leaf[];
  /** Requested fields, by name. Names that the object does not have are left out. */
  readonly fields: ReadonlyMap<string, FieldParts>;
}

/** Number of fields that are hashed before the generator yields. */
const portionFields = 500;

/**
 * Hashes the fields of an object. Yields after every {@link portionFields} fields.
 *
 * @param wanted names of the fields to return individually.
 */
export function* fieldsOfObject(text: string, wanted: readonly string[] = []): Generator<void, ObjectFields> {
  const leaves: Leaf[] = [];
  const fields = new Map<string, FieldParts>();
  let lastKey = zeroHash;
  const keyOf = text.length <= maxTextBytes ? cachedFieldKey : fieldKey;
  const parts = eachField(text);
  let next = parts.next();
  for (; next.done !== true; next = parts.next()) {
    const { name, before, value } = next.value;
    const field = { before, previousKey: lastKey, value };
    const key = keyOf(name);
    leaves.push({ key, valueHash: stateHashes.field(field) });
    if (wanted.includes(name)) {
      fields.set(name, field);
    }
    lastKey = key;
    if (leaves.length % portionFields === 0) {
      yield;
    }
  }
  return { leaves, fields, lastKey, tailHash: stateHashes.text(next.value) };
}

/** Builds the field tree of an object of any size, yielding to the event loop between portions. */
export async function buildFields(text: string): Promise<ObjectParts & Pick<ChangedTree, "pages">> {
  const { leaves, lastKey, tailHash } = await runYielding(fieldsOfObject(text));
  const { root: fieldsRoot, pages } = await runYielding(buildTree(leaves));
  return { fieldsRoot, lastKey, tailHash, pages };
}

/** Builds the field tree on the calling thread, yielding to the event loop between portions. */
export const buildFieldsHere: BuildDocument = async (address, text) => {
  const { pages, ...object } = await buildFields(text);
  return { ...object, pages: [...pageTexts(address, pages)] };
};
