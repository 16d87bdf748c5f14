/** What the state tree holds of a program: what is hashed of it, by docs/proofs.md. */
import { create, toBinary } from "@bufbuild/protobuf";
import { ProgramRecordSchema } from "../../../gen/gatehouse/state/v1/state_pb.js";
import { ProgramEncoding } from "../../../gen/gatehouse/storage/v1/storage_pb.js";
import { createLruCache } from "../../base/caches/lru-cache.js";
import { stateHashes } from "../../tree/node-hashes.js";
import type { Leaf } from "../../tree/path.js";
import { type FieldParts, nothing, type ObjectParts, type ProgramParts } from "../../tree/state-format.js";
import { toAccessControl } from "./access-control.js";
import { eachField, maxTextBytes } from "../documents/document-parts.js";
import { type ProgramRow, toRecord } from "./stored-program.js";

/** A document as far as it is hashed. */
export type DocumentParts =
  | { readonly kind: "nothing" }
  | { readonly kind: "text"; readonly text: string }
  | ({ readonly kind: "object" } & ObjectParts);

/** The leaf of a program, deleted or not. */
export function programLeaf(row: ProgramRow, document: DocumentParts): Leaf {
  return { key: stateHashes.programKey(row.address), valueHash: hashProgram(partsOf(row), document) };
}

/** What its leaf holds of a program. */
export function hashProgram(deps: Omit<ProgramParts, "documentHash">, document: DocumentParts): Uint8Array {
  return stateHashes.program({ ...deps, documentHash: hashDocument(document) });
}

/** Everything that is hashed of a program but its document. */
export function partsOf(row: ProgramRow): Omit<ProgramParts, "documentHash"> {
  const isDeleted = Boolean(row.deleted);
  return {
    blinding: isDeleted ? nothing : Buffer.from(row.blinding, "hex"),
    record: recordOf(row),
    metadataHash: isDeleted || row.metadata === null ? nothing : stateHashes.text(row.metadata),
  };
}

/** An encoded ProgramRecord. */
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
    case "nothing":
      return nothing;
    case "text":
      return stateHashes.plainDocument(document.text);
    case "object":
      return stateHashes.objectDocument(document);
  }
}

/** Key of a field in the tree of its document's fields. */
export function fieldKey(name: string): Uint8Array {
  return stateHashes.fieldKey(JSON.stringify(name));
}

/** Names whose keys are remembered, of a few hundred bytes each. */
const keptNames = 2_000;
const longestKeptName = 64;
const keysOfNames = createLruCache<Uint8Array>(keptNames);

/** The same for a document of few fields: these are often named as those of others. */
function keyOfCommonName(name: string): Uint8Array {
  let key = keysOfNames.get(name);
  if (key === undefined) {
    // A copy: what it is part of is larger, and would be kept with it.
    key = new Uint8Array(fieldKey(name));
    if (name.length <= longestKeptName) {
      keysOfNames.set(name, key);
    }
  }
  return key;
}

/** The fields of an object, and what else is hashed of it. */
export interface ObjectFields extends Omit<ObjectParts, "fieldsRoot"> {
  readonly leaves: readonly Leaf[];
  /** Of the fields with these names, as far as there are any. */
  readonly fields: ReadonlyMap<string, FieldParts>;
}

/** Fields that are hashed before the work stops. */
const portionFields = 500;

/**
 * The fields of an object. It stops now and then.
 *
 * @param wanted names of those to give one by one.
 */
export function* fieldsOfObject(text: string, wanted: readonly string[] = []): Generator<void, ObjectFields> {
  const leaves: Leaf[] = [];
  const fields = new Map<string, FieldParts>();
  let lastKey = nothing;
  const keyOf = text.length <= maxTextBytes ? keyOfCommonName : fieldKey;
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
