/**
 * Changes of storage programs, inside the database transaction of the block that carries them. A change that cannot be
 * made throws a Failure, which rejects its transaction; the text of the document is the truth, and its fields follow.
 */
import { hex32 } from "../base/hash.js";
import { createHash } from "node:crypto";
import type { Knex } from "knex";
import { z } from "zod";
import type { CreateProgram, ProgramData, StorageOperation } from "../../gen/gatehouse/storage/v1/operation_pb.js";
import { type AccessControl, AccessMode, AccessPermission } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { Failure } from "../rpc/errors.js";
import { type AccessRule, canWrite, namedReaders } from "./access.js";
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
import { foldName } from "./programs.js";

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
const maxIdentities = 1_000;
const maxGroups = 64;
/** Rows of one insert: SQLite takes 500 at most the way they are written. */
const rowsAtOnce = 400;

interface Program {
  readonly address: string;
  readonly encoding: "json" | "binary";
  readonly type: string;
  readonly access: AccessRule;
}

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
 * Makes one change.
 *
 * @throws Failure as the operation's comment in the proto says.
 */
export async function executeOperation(
  db: Knex,
  { operation }: StorageOperation,
  context: OperationContext,
): Promise<void> {
  switch (operation.case) {
    case "createProgram":
      await create(db, operation.value, context);
      return;
    case "writeProgram": {
      const program = await loadWritable(db, operation.value.storageAddress, context.sender);
      await replaceData(db, program.address, checkData(operation.value.data), context.timeMs);
      return;
    }
    case "setField": {
      const { storageAddress, field, value } = operation.value;
      checkJson("The value", value);
      const program = await loadWritable(db, storageAddress, context.sender);
      const document = await readObject(db, program);
      await writeField(db, program.address, setMember(document, field, value), field, value, context.timeMs);
      return;
    }
    case "deleteField": {
      const { storageAddress, field } = operation.value;
      const program = await loadWritable(db, storageAddress, context.sender);
      const document = deleteMember(await readObject(db, program), field);
      if (document === undefined) {
        throw noField(field);
      }
      await writeDocument(db, program.address, document, context.timeMs);
      await db("program_fields")
        .where({ address: program.address, name_json: JSON.stringify(field) })
        .delete();
      return;
    }
    case "setItem": {
      const { index, value } = operation.value;
      checkJson("The item", value);
      await changeItems(db, operation.value, context, (array, items) =>
        setItem(array, items, checkIndex(items, index), value),
      );
      return;
    }
    case "appendItem": {
      const { value } = operation.value;
      checkJson("The item", value);
      await changeItems(db, operation.value, context, (array, items) => appendItem(array, items, value));
      return;
    }
    case "deleteItem": {
      const { index } = operation.value;
      await changeItems(db, operation.value, context, (array, items) =>
        deleteItem(array, items, checkIndex(items, index)),
      );
      return;
    }
    case "updateAccess": {
      const { address } = await loadOwned(db, operation.value.storageAddress, context.sender);
      const rule = toRule(context.sender, operation.value.access);
      await db("programs")
        .where({ address })
        .update({ ...accessColumns(rule), updated_ms: context.timeMs });
      await db("program_readers").where({ address }).delete();
      await insertReaders(db, address, rule);
      return;
    }
    case "deleteProgram": {
      const { address } = await loadOwned(db, operation.value.storageAddress, context.sender);
      await db("programs").where({ address }).update({ deleted: true, updated_ms: context.timeMs, size_bytes: 0 });
      for (const table of ["program_documents", "program_fields", "program_readers"]) {
        await db(table).where({ address }).delete();
      }
      return;
    }
    case undefined:
      throw new Failure("INVALID_REQUEST", "The storage operation says nothing to do.");
  }
}

async function create(db: Knex, operation: CreateProgram, { sender, nonce, timeMs }: OperationContext): Promise<void> {
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
  const rule = toRule(sender, operation.access);
  const data = checkData(operation.data);
  await db("programs").insert({
    address,
    owner: sender,
    name,
    name_folded: foldName(name),
    ...dataColumns(data),
    ...accessColumns(rule),
    metadata,
    created_ms: timeMs,
    updated_ms: timeMs,
  });
  await insertReaders(db, address, rule);
  await insertData(db, address, data);
}

/** Checked data: a document's text, base64 as a JSON string, or nothing. */
type CheckedData =
  | { readonly encoding: "json"; readonly type: string; readonly text: string; readonly sizeBytes: number }
  | { readonly encoding: "binary"; readonly type: "binary"; readonly text: string; readonly sizeBytes: number }
  | undefined;

function checkData(given: ProgramData | undefined): CheckedData {
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

async function replaceData(db: Knex, address: string, data: CheckedData, timeMs: number): Promise<void> {
  await db("program_fields").where({ address }).delete();
  await db("program_documents").where({ address }).delete();
  await db("programs")
    .where({ address })
    .update({ ...dataColumns(data), updated_ms: timeMs });
  await insertData(db, address, data);
}

/** What a program's own row says of its data. */
function dataColumns(data: CheckedData) {
  const { encoding = "json", type = "null", sizeBytes = 0 } = data ?? {};
  return { encoding, type, size_bytes: sizeBytes };
}

async function insertData(db: Knex, address: string, data: CheckedData): Promise<void> {
  if (data === undefined) {
    return;
  }
  const { text, type } = data;
  await db("program_documents").insert({ address, data: text });
  if (type === "object") {
    const rows = membersOf(text).map(({ name, valueStart, valueEnd }, position) => {
      const value = text.slice(valueStart, valueEnd);
      return { address, name_json: JSON.stringify(name), position, type: typeOfJson(value), value };
    });
    await insertRows(db, "program_fields", rows);
  }
}

async function insertRows(db: Knex, table: string, rows: readonly object[]): Promise<void> {
  for (let i = 0; i < rows.length; i += rowsAtOnce) {
    await db(table).insert(rows.slice(i, i + rowsAtOnce));
  }
}

async function writeField(
  db: Knex,
  address: string,
  document: string,
  field: string,
  value: string,
  timeMs: number,
): Promise<void> {
  await writeDocument(db, address, document, timeMs);
  const key = { address, name_json: JSON.stringify(field) };
  const change = { type: typeOfJson(value), value };
  if ((await db("program_fields").where(key).update(change)) === 0) {
    const [last] = (await db("program_fields").where({ address }).max({ position: "position" })) as {
      position: number | null;
    }[];
    await db("program_fields").insert({ ...key, ...change, position: (last?.position ?? -1) + 1 });
  }
}

async function writeDocument(db: Knex, address: string, text: string, timeMs: number): Promise<void> {
  const sizeBytes = Buffer.byteLength(text);
  if (sizeBytes > maxDocumentBytes) {
    throw new Failure("INVALID_REQUEST", `The document would be larger than ${maxDocumentBytes} bytes.`);
  }
  checkDepth("The document", text);
  await db("program_documents").insert({ address, data: text }).onConflict("address").merge();
  await db("programs").where({ address }).update({ type: "object", size_bytes: sizeBytes, updated_ms: timeMs });
}

async function changeItems(
  db: Knex,
  { storageAddress, field }: { readonly storageAddress: string; readonly field: string },
  { sender, timeMs }: OperationContext,
  change: (array: string, items: readonly Range[]) => string,
): Promise<void> {
  const program = await loadWritable(db, storageAddress, sender);
  const document = await readObject(db, program);
  const member = membersOf(document).find(({ name }) => name === field);
  if (member === undefined) {
    throw noField(field);
  }
  const array = document.slice(member.valueStart, member.valueEnd);
  if (typeOfJson(array) !== "array") {
    throw new Failure("INVALID_FIELD_TYPE", `The field ${quoted(field)} is no array.`);
  }
  const changed = change(array, itemsOf(array));
  await writeField(db, program.address, replaceValue(document, member, changed), field, changed, timeMs);
}

function checkIndex(items: readonly Range[], index: number): number {
  if (index >= items.length) {
    throw new Failure("INDEX_OUT_OF_BOUNDS", `The array has ${items.length} items; there is none at ${index}.`);
  }
  return index;
}

/** The columns of a program's row that say who may read. */
interface AccessColumns {
  readonly owner: string;
  readonly mode: AccessRule["mode"];
  /** JSON text of the rest. */
  readonly access: string;
}

async function load(db: Knex, storageAddress: string): Promise<Program> {
  const address = checkAddress(storageAddress);
  const row = (await db("programs").where({ address, deleted: false }).first()) as
    (AccessColumns & Pick<Program, "encoding" | "type">) | undefined;
  if (row === undefined) {
    throw new Failure("NOT_FOUND", "There is no storage program at this address.");
  }
  const { owner, mode, encoding, type } = row;
  const lists = JSON.parse(row.access) as Omit<AccessRule, "owner" | "mode">;
  return { address, encoding, type, access: { owner, mode, ...lists } };
}

async function loadWritable(db: Knex, address: string, sender: string): Promise<Program> {
  const program = await load(db, address);
  if (!canWrite(program.access, sender)) {
    throw new Failure("PERMISSION_DENIED", "The sender may not change this storage program.");
  }
  return program;
}

async function loadOwned(db: Knex, address: string, sender: string): Promise<Program> {
  const program = await load(db, address);
  if (program.access.owner !== sender) {
    throw new Failure("PERMISSION_DENIED", "Only its owner may do this to a storage program.");
  }
  return program;
}

/** The text of a document that is an object; of a program that holds nothing, an empty one. */
async function readObject(db: Knex, { address, type, encoding }: Program): Promise<string> {
  const row = (await db("program_documents").where({ address }).first("data")) as { data: string } | undefined;
  if (row === undefined) {
    return "{}";
  }
  if (encoding !== "json" || type !== "object") {
    throw new Failure("INVALID_FIELD_TYPE", `The document is no object but ${type}; only objects have fields.`);
  }
  return row.data;
}

/** What a program's own row says of who may read. */
function accessColumns({ mode, allowed, blacklisted, groups }: AccessRule) {
  return { mode, access: JSON.stringify({ allowed, blacklisted, groups }) };
}

async function insertReaders(db: Knex, address: string, rule: AccessRule): Promise<void> {
  const rows = [...namedReaders(rule)].map(([identity, isAllowed]) => ({ address, identity, allowed: isAllowed }));
  await insertRows(db, "program_readers", rows);
}

const identities = z.array(z.string().regex(hex32)).max(maxIdentities);
const modes = new Map<AccessMode, AccessRule["mode"]>([
  [AccessMode.PUBLIC, "public"],
  [AccessMode.OWNER, "owner"],
  [AccessMode.RESTRICTED, "restricted"],
]);
const permissionWords = new Map<AccessPermission, "read" | "write">([
  [AccessPermission.READ, "read"],
  [AccessPermission.WRITE, "write"],
]);

function toRule(owner: string, given: AccessControl | undefined): AccessRule {
  if (given === undefined) {
    return { owner, mode: "owner", allowed: [], blacklisted: [], groups: {} };
  }
  const mode = modes.get(given.mode);
  if (mode === undefined) {
    throw new Failure("INVALID_REQUEST", "The access mode must be public, owner or restricted.");
  }
  const groups = Object.entries(given.groups);
  const lists = [given.allowed, given.blacklisted, ...groups.map(([, { members }]) => members)];
  if (groups.length > maxGroups || lists.some((list) => !identities.safeParse(list).success)) {
    throw new Failure(
      "INVALID_REQUEST",
      `Access names at most ${maxIdentities} keys in a list, each 0x and 64 lower-case hex digits, and ${maxGroups} groups.`,
    );
  }
  return {
    owner,
    mode,
    allowed: given.allowed,
    blacklisted: given.blacklisted,
    groups: Object.fromEntries(
      groups.map(([name, { members, permissions }]) => [
        name,
        { members, permissions: permissions.flatMap((permission) => permissionWords.get(permission) ?? []) },
      ]),
    ),
  };
}

function noField(field: string): Failure {
  return new Failure("FIELD_NOT_FOUND", `The program has no field ${quoted(field)}.`);
}

function quoted(name: string): string {
  return JSON.stringify(name.slice(0, 100));
}
