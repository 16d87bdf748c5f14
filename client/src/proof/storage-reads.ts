/** Verified reads of storage programs: the proof that each needs, and the response that is built from it. */
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ProgramRecord } from "../../../gen/gatehouse/state/v1/state_pb.js";
import { ProgramEncoding, StorageLocation, StorageService } from "../../../gen/gatehouse/storage/v1/storage_pb.js";
import { countItems, sliceItem } from "../../../src/storage/documents/document.js";
import { typeOfJson } from "../../../src/storage/documents/json-text.js";
import {
  isAddress,
  notAnArray,
  fieldNotFound,
  notAnObject,
  itemNotFound,
  programNotFound,
  valueTypes,
} from "../../../src/storage/programs/rejections.js";
import type { ProofQuestion } from "./check.js";
import { namesOf } from "./document.js";
import type { ProvedProgramState } from "./program.js";
import { provedRead } from "./proved-read.js";
import { type ProofSource, provenError, unprovable, wrongForm } from "./source.js";

/** Returns an existing program with the requested parts. Rejects with NOT_FOUND, which is proven. */
async function requireProgram(
  { prove }: ProofSource,
  storageAddress: string,
  parts: ProofQuestion,
): Promise<ProvedProgramState> {
  if (!isAddress(storageAddress)) {
    throw wrongForm("storage_address", "stor- and 40 lower-case hex digits", storageAddress);
  }
  const { program } = await prove({ storageAddress, ...parts });
  if (program?.kind === "changed") {
    throw unprovable("The state of a program before its last change");
  }
  if (program?.kind !== "present" || program.record.deleted) {
    throw provenError(programNotFound);
  }
  return program;
}

/** Returns a program with an object as its document. Rejects with INVALID_FIELD_TYPE, which is proven too. */
async function requireObject(source: ProofSource, address: string, parts: ProofQuestion): Promise<ProvedProgramState> {
  const initial = await requireProgram(source, address, parts);
  const isBinary = initial.record.encoding === ProgramEncoding.BINARY;
  // The type of a document that is not an object is known only from its text.
  const isUnread = initial.document === "plain" && !isBinary && initial.data === undefined;
  const program = isUnread ? await requireProgram(source, address, { ...parts, withDocument: true }) : initial;
  if (program.document !== "object") {
    throw provenError(notAnObject(isBinary ? "binary" : typeOfJson(program.data ?? "null")));
  }
  return program;
}

/** Returns the JSON text of a field; undefined if the object has no field of this name. */
async function findField(source: ProofSource, address: string, name: string): Promise<string | undefined> {
  return (await requireObject(source, address, { fields: [name] })).fields.get(name);
}

/** Returns the JSON text of a field. Rejects with FIELD_NOT_FOUND, which is proven. */
async function requireField(source: ProofSource, address: string, name: string): Promise<string> {
  const value = await findField(source, address, name);
  if (value === undefined) {
    throw provenError(fieldNotFound(name));
  }
  return value;
}

const { method } = StorageService;

export const storageReads = [
  provedRead(method.getProgram, async ({ storageAddress }, source) => {
    const program = await requireProgram(source, storageAddress, { withDocument: true, withMetadata: true });
    const { record, data, metadata } = program;
    const { owner, programName, encoding, sizeBytes } = record;
    return {
      ...{ success: true, storageAddress, owner, programName, encoding, data, metadata, sizeBytes },
      acl: toAccessControl(record),
      // The proven state is always on the chain.
      storageLocation: StorageLocation.ONCHAIN,
      createdAt: timestampFromMs(Number(record.createdMs)),
      updatedAt: timestampFromMs(Number(record.updatedMs)),
    };
  }),

  provedRead(method.getProgramData, async ({ storageAddress }, source) => {
    const { data } = await requireProgram(source, storageAddress, { withDocument: true });
    return { success: true, storageAddress, data };
  }),

  // Only the full document proves that no field is missing, and their order.
  provedRead(method.listFields, async ({ storageAddress }, source) => {
    const { data = "" } = await requireObject(source, storageAddress, { withDocument: true });
    return { success: true, storageAddress, fields: namesOf(data) };
  }),

  provedRead(method.getField, async ({ storageAddress, field }, source) => {
    const value = await requireField(source, storageAddress, field);
    return { success: true, storageAddress, field, value, type: valueTypes[typeOfJson(value)] };
  }),

  provedRead(
    method.getFieldItem,
    async ({ storageAddress, field, index: requestedIndex, fromEnd, withLength }, source) => {
      const array = await requireField(source, storageAddress, field);
      const type = typeOfJson(array);
      if (type !== "array") {
        throw provenError(notAnArray(type));
      }
      const length = countItems(array);
      const index = fromEnd ? length - 1 - requestedIndex : requestedIndex;
      const value = sliceItem(array, index);
      if (value === undefined) {
        throw provenError(itemNotFound(length));
      }
      return { success: true, storageAddress, field, index, value, ...(withLength && { arrayLength: length }) };
    },
  ),

  provedRead(method.hasField, async ({ storageAddress, field }, source) => {
    const value = await findField(source, storageAddress, field);
    return { success: true, storageAddress, field, exists: value !== undefined };
  }),

  provedRead(method.getFieldType, async ({ storageAddress, field }, source) => {
    const value = await requireField(source, storageAddress, field);
    return { success: true, storageAddress, field, type: valueTypes[typeOfJson(value)] };
  }),
];

function toAccessControl({ mode, allowed, blacklisted, groups }: ProgramRecord) {
  return {
    ...{ mode, allowed, blacklisted },
    groups: Object.fromEntries(groups.flatMap(({ name, group }) => (group === undefined ? [] : [[name, group]]))),
  };
}
