/** Implementation of the `gatehouse storage` commands that change programs. */
import * as operations from "../../../client/src/operations.js";
import { type Operation, programAddress } from "../../../client/src/transaction.js";
import { maxDocumentBytes } from "../../storage/documents/document-bounds.js";
import { ExitError, exitCodes } from "../usage/errors.js";
import type { ChangeFlags } from "../usage/flags.js";
import { readInput } from "../usage/read-input.js";
import { loadKey } from "./caller.js";
import { submitAndReport } from "./submit.js";

/** Sources of a document, at most one of which may be set. */
export interface DataFlags {
  readonly data?: string;
  readonly file?: string;
  readonly binary?: string;
}

/** Access rule of a program. */
export interface AccessFlags {
  readonly access?: operations.AccessMode;
  readonly allow?: string[];
  readonly blacklist?: string[];
  readonly group?: string[];
}

/** Content and access rule of a new program. */
export interface CreateFlags extends ChangeFlags, DataFlags, AccessFlags {
  readonly metadata?: string;
  readonly salt: string;
}

/** Index of an array item. */
export interface IndexFlags {
  readonly index?: number;
}

/** Creates a program and prints its address. */
export async function createProgram(name: string, flags: CreateFlags): Promise<void> {
  const { metadata, salt } = flags;
  const data = await readData(flags, false);
  const key = await loadKey(flags.key);
  const nonce = Date.now();
  const access = readAccess(flags);
  const operation = operations.createProgram({ name, data, salt, metadata: asWritten(metadata), access });
  await change(flags, operation, programAddress(key.publicKey, name, BigInt(nonce), salt), nonce);
}

/** Replaces the document of a program. */
export async function writeProgram(storageAddress: string, flags: ChangeFlags & DataFlags): Promise<void> {
  await change(flags, operations.writeProgram(storageAddress, (await readData(flags, true))!), storageAddress);
}

/** Sets a field, or an item of an array field. */
export async function setField(
  storageAddress: string,
  field: string,
  value: string,
  flags: ChangeFlags & IndexFlags,
): Promise<void> {
  checkValue(value);
  const text = asWritten(value);
  const { index } = flags;
  const operation =
    index === undefined
      ? operations.setField(storageAddress, field, text)
      : operations.setItem(storageAddress, field, index, text);
  await change(flags, operation, storageAddress);
}

/** Appends an item to an array field. */
export async function appendItem(
  storageAddress: string,
  field: string,
  value: string,
  flags: ChangeFlags,
): Promise<void> {
  checkValue(value);
  await change(flags, operations.appendItem(storageAddress, field, asWritten(value)), storageAddress);
}

/** Deletes a program, a field, or an item. */
export async function deletePart(
  address: string,
  field: string | undefined,
  flags: ChangeFlags & IndexFlags,
): Promise<void> {
  await change(flags, deleteOperation(address, field, flags.index), address);
}

/** Replaces the access rule. */
export async function updateAccess(storageAddress: string, flags: ChangeFlags & AccessFlags): Promise<void> {
  const access = readAccess(flags);
  if (access === undefined) {
    throw new ExitError("--access public, owner or restricted is required.", exitCodes.usage);
  }
  await change(flags, operations.updateAccess(storageAddress, access), storageAddress);
}

/** Reads the document from its source; undefined if there is none and it is not required. */
async function readData(
  { data, file, binary }: DataFlags,
  isRequired: boolean,
): Promise<operations.JsonText | Uint8Array | undefined> {
  const sources = Object.entries({ data, file, binary }).filter(([, value]) => value !== undefined);
  if (sources.length > 1) {
    const names = sources.map(([name]) => `--${name}`).join(" and ");
    throw new ExitError(`${names} exclude each other; use one of them.`, exitCodes.usage);
  }
  if (isRequired && sources.length === 0) {
    throw new ExitError("One of --data, --file and --binary is required.", exitCodes.usage);
  }
  if (binary !== undefined) {
    return await readInput(binary, maxDocumentBytes);
  }
  return asWritten(
    data ?? (file === undefined ? undefined : (await readInput(file, maxDocumentBytes)).toString("utf8")),
  );
}

/** Wraps JSON text unchanged, so that the node validates the text. */
function asWritten(text: string): operations.JsonText;
function asWritten(text: string | undefined): operations.JsonText | undefined;
function asWritten(text: string | undefined): operations.JsonText | undefined {
  return text === undefined ? undefined : new operations.JsonText(text);
}

function readAccess(flags: AccessFlags): operations.AccessRule | undefined {
  const { access, allow = [], blacklist = [], group = [] } = flags;
  if (access === undefined) {
    if (allow.length + blacklist.length + group.length > 0) {
      throw new ExitError("--allow, --blacklist and --group require --access.", exitCodes.usage);
    }
    return undefined;
  }
  const groups = Object.fromEntries(
    group.map((text) => {
      const [name = "", permissions = "", keys = "", ...rest] = text.split(":");
      if (name === "" || rest.length > 0 || !/^(read|write)(,(read|write))?$/.test(permissions)) {
        throw new ExitError(`--group must be NAME:read,write:KEY,KEY, not "${text}".`, exitCodes.usage);
      }
      return [
        name,
        {
          members: keys.split(",").filter((member) => member !== ""),
          permissions: permissions.split(",") as operations.AccessGroup["permissions"],
        },
      ];
    }),
  );
  return { mode: access, allowed: allow, blacklisted: blacklist, groups };
}

function deleteOperation(storageAddress: string, field: string | undefined, index: number | undefined): Operation {
  if (field === undefined) {
    if (index !== undefined) {
      throw new ExitError("--index requires a FIELD.", exitCodes.usage);
    }
    return operations.deleteProgram(storageAddress);
  }
  return index === undefined
    ? operations.deleteField(storageAddress, field)
    : operations.deleteItem(storageAddress, field, index);
}

function checkValue(value: string): void {
  try {
    JSON.parse(value);
  } catch {
    throw new ExitError(
      `VALUE must be JSON, not ${value.slice(0, 80)}; put a string in quotes: '"${value.slice(0, 40)}"'`,
      exitCodes.usage,
    );
  }
}

/** Signs and submits a change, and prints the address of the program. */
async function change(flags: ChangeFlags, operation: Operation, storageAddress: string, nonce?: number): Promise<void> {
  await submitAndReport(flags, operation, storageAddress, { storageAddress }, nonce);
}
