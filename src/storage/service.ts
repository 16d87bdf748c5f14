/** The storage service: reads of programs, each behind the access check. */
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  ProgramEncoding,
  StorageLocation,
  type StorageService,
  ValueType,
} from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { Failure } from "../rpc/errors.js";
import { normalizeBareHex } from "../rpc/parameters.js";
import { answerOnce } from "../base/read-cache.js";
import type { Call, Implementation } from "../rpc/service.js";
import { canRead } from "./access.js";
import { toAccessControl } from "./access-control.js";
import { checkAddress } from "./address.js";
import { countItems, sliceItem } from "./document.js";
import { toPage } from "./paging.js";
import type { Field, FieldPortion, ProgramEntry, ProgramRecord, Programs, WholeProgram } from "./programs.js";

/** Longest name that can be searched, in UTF-16 units. */
const maxQueryLength = 256;

/** Builds the storage service. */
export function createStorageService(programs: Programs): Implementation<typeof StorageService> {
  const programAnswer = answerOnce(toProgram);
  const dataAnswer = answerOnce(toData);

  async function readField(address: string, name: string, call: Call): Promise<Field | undefined> {
    const { record, field } = needReadable(await programs.findWithField(checkAddress(address), name), call);
    needObject(record);
    return field;
  }

  /** An array field, or the part of it that holds an item. */
  async function readArray(address: string, name: string, index: number, call: Call): Promise<ArrayPart> {
    const found = needReadable(await programs.findWithItem(address, name, index), call);
    needObject(found.record);
    const field = needField(found.field, name);
    if (field.type !== "array") {
      throw new Failure(
        "INVALID_FIELD_TYPE",
        `The field holds ${field.type === "object" ? "an" : "a"} ${field.type}, not an array.`,
      );
    }
    return toArrayPart(field);
  }

  /** The same, for an item that is counted from the end: it is looked for until the array is as long as was thought. */
  async function readArrayFromEnd(address: string, name: string, index: number, call: Call): Promise<ArrayPart> {
    for (let length = 0; ;) {
      const array = await readArray(address, name, Math.max(0, length - 1 - index), call);
      if (array.isWhole || array.length() === length) {
        return array;
      }
      length = array.length();
    }
  }

  return {
    async getProgram({ storageAddress }, call) {
      return programAnswer(needReadable(await programs.findWithData(checkAddress(storageAddress)), call));
    },

    async getProgramData({ storageAddress }, call) {
      return dataAnswer(needReadable(await programs.findWithData(checkAddress(storageAddress)), call));
    },

    async listFields({ storageAddress }, call) {
      const { record, names } = needReadable(await programs.findWithFieldNames(checkAddress(storageAddress)), call);
      needObject(record);
      return { success: true, storageAddress, fields: names };
    },

    async getField({ storageAddress, field }, call) {
      const { value, type } = needField(await readField(storageAddress, field, call), field);
      return { success: true, storageAddress, field, value, type: valueTypes[type] };
    },

    async getFieldItem({ storageAddress, field, index: asked, fromEnd, withLength }, call) {
      const address = checkAddress(storageAddress);
      const array = await (fromEnd ? readArrayFromEnd : readArray)(address, field, asked, call);
      const index = fromEnd ? array.length() - 1 - asked : asked;
      const value = array.itemAt(index);
      if (value === undefined) {
        throw new Failure("INDEX_OUT_OF_BOUNDS", `The array has ${array.length()} items; an index starts at 0.`);
      }
      return {
        ...{ success: true, storageAddress, field, index, value },
        ...(withLength && { arrayLength: array.length() }),
      };
    },

    async hasField({ storageAddress, field }, call) {
      const found = await readField(storageAddress, field, call);
      return { success: true, storageAddress, field, exists: found !== undefined };
    },

    async getFieldType({ storageAddress, field }, call) {
      const { type } = needField(await readField(storageAddress, field, call), field);
      return { success: true, storageAddress, field, type: valueTypes[type] };
    },

    async listProgramsByOwner({ owner, ...page }, { caller }) {
      const key = normalizeBareHex("An owner is an Ed25519 public key:", owner);
      const entries = await programs.listByOwner(key, caller.identity, toPage(page));
      return { success: true, programs: entries.map(toSummary), count: entries.length };
    },

    async searchPrograms({ query, exact, ...page }, { caller }) {
      if (query === "" || query.length > maxQueryLength) {
        throw new Failure("INVALID_REQUEST", `q is required: the name searched, at most ${maxQueryLength} characters.`);
      }
      const entries = await programs.search(query, exact, caller.identity, toPage(page));
      return { success: true, query, programs: entries.map(toSummary), count: entries.length };
    },
  };
}

/** An array, or a part of it. */
interface ArrayPart {
  readonly isWhole: boolean;
  /** Of the whole array. */
  length(): number;
  /** Text of an item of this part, by its place in the array; undefined where there is none. */
  itemAt(index: number): string | undefined;
}

function toArrayPart({ value, chunk }: FieldPortion): ArrayPart {
  return {
    isWhole: chunk === undefined,
    length: () => chunk?.arrayItems ?? countItems(value),
    itemAt: (index) => sliceItem(value, index - (chunk?.firstItem ?? 0)),
  };
}

/** A field that was asked for, if there is one. */
function needField<T extends Field>(field: T | undefined, name: string): T {
  if (field === undefined) {
    throw new Failure("FIELD_NOT_FOUND", `The program has no field ${JSON.stringify(name.slice(0, 100))}.`);
  }
  return field;
}

const notForYou = "This storage program is not readable for this identity.";
const howToSign =
  "This storage program is not readable for anonymous callers. An identity must be signed: send the headers identity, " +
  "timestamp (ms), network (the genesis hash) and signature, which is Ed25519 over the lower-case hex SHA-256 of " +
  "gatehouse-identity:<network>:<identity>:<timestamp>.";

/** What was found, if it exists and the caller may read it. */
function needReadable<T extends { readonly record: ProgramRecord }>(found: T | undefined, { caller }: Call): T {
  if (found === undefined) {
    throw new Failure("NOT_FOUND", "There is no storage program at this address.");
  }
  if (!canRead(found.record.access, caller.identity)) {
    throw new Failure("PERMISSION_DENIED", caller.identity === undefined ? howToSign : notForYou);
  }
  return found;
}

function toProgram({ record, data }: WholeProgram) {
  return {
    success: true,
    storageAddress: record.address,
    owner: record.access.owner,
    programName: record.name,
    encoding: encodings[record.encoding],
    data,
    metadata: record.metadata,
    acl: toAccessControl(record.access),
    storageLocation: StorageLocation.ONCHAIN,
    sizeBytes: record.sizeBytes,
    createdAt: timestampFromMs(record.createdMs),
    updatedAt: timestampFromMs(record.updatedMs),
  };
}

function toData({ record, data }: WholeProgram) {
  return { success: true, storageAddress: record.address, data };
}

function needObject({ type }: ProgramRecord): void {
  if (type !== "object") {
    throw new Failure(
      "INVALID_FIELD_TYPE",
      `The program has no fields: its data is ${descriptions[type]}, not an object.`,
    );
  }
}

const descriptions = {
  object: "an object",
  array: "an array",
  string: "a string",
  number: "a number",
  boolean: "a boolean",
  null: "empty",
  binary: "binary",
} as const;

const encodings = { json: ProgramEncoding.JSON, binary: ProgramEncoding.BINARY } as const;

const valueTypes = {
  string: ValueType.STRING,
  number: ValueType.NUMBER,
  boolean: ValueType.BOOLEAN,
  array: ValueType.ARRAY,
  object: ValueType.OBJECT,
  null: ValueType.NULL,
} as const;

function toSummary(entry: ProgramEntry) {
  return {
    storageAddress: entry.address,
    programName: entry.name,
    owner: entry.owner,
    encoding: encodings[entry.encoding],
    sizeBytes: entry.sizeBytes,
    storageLocation: StorageLocation.ONCHAIN,
    createdAt: timestampFromMs(entry.createdMs),
    updatedAt: timestampFromMs(entry.updatedMs),
  };
}
