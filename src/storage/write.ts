/**
 * Operations on storage programs, inside the transaction of the block that carries them. One that cannot be executed
 * throws a Failure, which rejects its transaction.
 */
import { createHash } from "node:crypto";
import type { CreateProgram, ProgramData, StorageOperation } from "../../gen/gatehouse/storage/v1/operation_pb.js";
import { Failure } from "../rpc/errors.js";
import { canWrite } from "./access.js";
import { readAccessControl } from "./access-control.js";
import { checkAddress } from "./address.js";
import {
  appendItem,
  checkDepth,
  checkJson,
  deleteItem,
  deleteMember,
  itemsOf,
  maxDocumentBytes,
  membersOf,
  type Range,
  replaceValue,
  setItem,
  setMember,
  typeOfJson,
} from "./document.js";
import type { ChangeableProgram, ProgramChanges, ProgramContent } from "./programs.js";

/** Who acts, and when. */
export interface OperationContext {
  /** 0x and 64 lower-case hex digits. */
  readonly sender: string;
  readonly nonce: bigint;
  /** Time of the block. */
  readonly timeMs: number;
}

const maxNameLength = 256;
const maxMetadataBytes = 16 * 1024;

/** Address of a program: `stor-` and 40 lower-case hex digits. */
export function programAddress(owner: string, name: string, nonce: bigint, salt: string): string {
  const hash = createHash("sha256").update(`${owner}:${name}:${nonce}:${salt}`, "utf8").digest("hex");
  return `stor-${hash.slice(0, 40)}`;
}

/** Address of the program that an operation makes or changes; undefined when it names none. */
export function touchedAddress(
  { operation }: StorageOperation,
  { sender, nonce }: Pick<OperationContext, "sender" | "nonce">,
): string | undefined {
  switch (operation.case) {
    case undefined:
      return undefined;
    case "createProgram":
      return programAddress(sender, operation.value.programName, nonce, operation.value.salt);
    default:
      return operation.value.storageAddress;
  }
}

/**
 * Executes one operation.
 *
 * @throws Failure as the operation's comment in the proto says.
 */
export async function executeOperation(
  programs: ProgramChanges,
  { operation }: StorageOperation,
  context: OperationContext,
): Promise<void> {
  const { sender, timeMs } = context;
  switch (operation.case) {
    case "createProgram":
      await create(programs, operation.value, context);
      return;
    case "writeProgram": {
      const { storageAddress, data } = operation.value;
      const { address } = await findWritable(programs, storageAddress, sender);
      await programs.replaceContent(address, readContent(data), timeMs);
      return;
    }
    case "setField": {
      const { storageAddress, field, value } = operation.value;
      checkJson("The value", value);
      const program = await findWritable(programs, storageAddress, sender);
      const text = setMember(await readObject(programs, program), field, value);
      await programs.setField(program.address, { ...measure(text), field, value }, timeMs);
      return;
    }
    case "deleteField": {
      const { storageAddress, field } = operation.value;
      const program = await findWritable(programs, storageAddress, sender);
      const text = deleteMember(await readObject(programs, program), field);
      if (text === undefined) {
        throw noField();
      }
      await programs.deleteField(program.address, { ...measure(text), field }, timeMs);
      return;
    }
    case "setItem": {
      const { index, value } = operation.value;
      checkJson("The item", value);
      await changeItems(programs, operation.value, context, (array, items) =>
        setItem(array, items, checkIndex(items, index), value),
      );
      return;
    }
    case "appendItem": {
      const { value } = operation.value;
      checkJson("The item", value);
      await changeItems(programs, operation.value, context, (array, items) => appendItem(array, items, value));
      return;
    }
    case "deleteItem": {
      const { index } = operation.value;
      await changeItems(programs, operation.value, context, (array, items) =>
        deleteItem(array, items, checkIndex(items, index)),
      );
      return;
    }
    case "updateAccess": {
      const { storageAddress, access } = operation.value;
      const { address } = await findOwned(programs, storageAddress, sender);
      await programs.setAccess(address, readAccessControl(sender, access), timeMs);
      return;
    }
    case "deleteProgram": {
      const { address } = await findOwned(programs, operation.value.storageAddress, sender);
      await programs.delete(address, timeMs);
      return;
    }
    case undefined:
      throw new Failure("INVALID_REQUEST", "The storage operation says nothing to do.");
  }
}

async function create(
  programs: ProgramChanges,
  operation: CreateProgram,
  { sender, nonce, timeMs }: OperationContext,
): Promise<void> {
  const { programName: name, salt, metadata } = operation;
  if (name === "" || name.length > maxNameLength || salt.length > maxNameLength || /\0/.test(name + salt)) {
    throw new Failure(
      "INVALID_REQUEST",
      `A program's name has 1 to ${maxNameLength} characters, its salt at most as many, and neither holds a NUL.`,
    );
  }
  if (metadata !== undefined) {
    checkJson("The metadata", metadata, maxMetadataBytes);
    if (typeOfJson(metadata) !== "object") {
      throw new Failure("INVALID_REQUEST", "The metadata must be a JSON object.");
    }
  }
  const address = programAddress(sender, name, nonce, salt);
  const access = readAccessControl(sender, operation.access);
  const content = readContent(operation.data);
  await programs.insert({ address, name, access, content, metadata }, timeMs);
}

/** What a program is given to hold, checked. */
function readContent(given: ProgramData | undefined): ProgramContent {
  switch (given?.data.case) {
    case "json": {
      const text = given.data.value;
      checkJson("The document", text);
      return { encoding: "json", type: typeOfJson(text), text, sizeBytes: Buffer.byteLength(text) };
    }
    case "binary": {
      const bytes = given.data.value;
      if (bytes.length > maxDocumentBytes) {
        throw new Failure("INVALID_REQUEST", `The data must not be larger than ${maxDocumentBytes} bytes.`);
      }
      const text = JSON.stringify(Buffer.from(bytes).toString("base64"));
      return { encoding: "binary", type: "binary", text, sizeBytes: bytes.length };
    }
    case undefined:
      return undefined;
  }
}

/** A document with its size; one that grew too large or too deep is refused. */
function measure(text: string): { readonly text: string; readonly sizeBytes: number } {
  const sizeBytes = Buffer.byteLength(text);
  if (sizeBytes > maxDocumentBytes) {
    throw new Failure("INVALID_REQUEST", `The document would be larger than ${maxDocumentBytes} bytes.`);
  }
  checkDepth("The document", text);
  return { text, sizeBytes };
}

async function changeItems(
  programs: ProgramChanges,
  { storageAddress, field }: { readonly storageAddress: string; readonly field: string },
  { sender, timeMs }: OperationContext,
  change: (array: string, items: readonly Range[]) => string,
): Promise<void> {
  const program = await findWritable(programs, storageAddress, sender);
  const document = await readObject(programs, program);
  const member = membersOf(document).find(({ name }) => name === field);
  if (member === undefined) {
    throw noField();
  }
  const array = document.slice(member.valueStart, member.valueEnd);
  if (typeOfJson(array) !== "array") {
    throw new Failure("INVALID_FIELD_TYPE", "The field is no array.");
  }
  const value = change(array, itemsOf(array));
  const text = replaceValue(document, member, value);
  await programs.setField(program.address, { ...measure(text), field, value }, timeMs);
}

function checkIndex(items: readonly Range[], index: number): number {
  if (index >= items.length) {
    throw new Failure("INDEX_OUT_OF_BOUNDS", "The array has no item at this index.");
  }
  return index;
}

async function find(programs: ProgramChanges, address: string): Promise<ChangeableProgram> {
  const program = await programs.find(checkAddress(address));
  if (program === undefined) {
    throw new Failure("NOT_FOUND", "There is no storage program at this address.");
  }
  return program;
}

async function findWritable(programs: ProgramChanges, address: string, sender: string): Promise<ChangeableProgram> {
  const program = await find(programs, address);
  if (!canWrite(program.access, sender)) {
    throw new Failure("PERMISSION_DENIED", "The sender may not change this storage program.");
  }
  return program;
}

async function findOwned(programs: ProgramChanges, address: string, sender: string): Promise<ChangeableProgram> {
  const program = await find(programs, address);
  if (program.access.owner !== sender) {
    throw new Failure("PERMISSION_DENIED", "Only its owner may do this to a storage program.");
  }
  return program;
}

/** The text of a document that is an object; of a program that holds nothing, an empty one. */
async function readObject(programs: ProgramChanges, { address, type, encoding }: ChangeableProgram): Promise<string> {
  const text = await programs.document(address);
  if (text === undefined) {
    return "{}";
  }
  if (encoding !== "json" || type !== "object") {
    throw new Failure("INVALID_FIELD_TYPE", "The document is no object; only objects have fields.");
  }
  return text;
}

function noField(): Failure {
  return new Failure("FIELD_NOT_FOUND", "The program has no such field.");
}
