/** What the commands of `gatehouse storage` do that change something. */
import * as operations from "../../../client/src/operations.js";
import { type Operation, programAddress } from "../../../client/src/transaction.js";
import { maxDocumentBytes } from "../../storage/documents/document-bounds.js";
import { ExitError, exitCodes } from "../usage/errors.js";
import type { ChangeFlags } from "../usage/flags.js";
import { readInput } from "../usage/read-input.js";
import { loadKey } from "./caller.js";
import { submitAndReport } from "./submit.js";

/** Where a document is taken from. */
export interface DataFlags {
  readonly data?: string;
  readonly file?: string;
  readonly binary?: string;
}

/** Who may read and write. */
export interface AccessFlags {
  readonly access?: operations.AccessMode;
  readonly allow?: string[];
  readonly blacklist?: string[];
  readonly group?: string[];
}

/** What a program is made of. */
export interface CreateFlags extends ChangeFlags, DataFlags, AccessFlags {
  readonly metadata?: string;
  readonly salt: string;
}

/** Which item of an array. */
export interface IndexFlags {
  readonly index?: number;
}

/** Makes a program. */
export async function createProgram(name: string, flags: CreateFlags): Promise<void> {
  const { metadata, salt } = flags;
  const data = await readData(flags, false);
  const key = await loadKey(flags.key);
  const nonce = Date.now();
  const access = readAccess(flags);
  const operation = operations.createProgram({ name, data, salt, metadata: asWritten(metadata), access });
  await change(flags, operation, programAddress(key.publicKey, name, BigInt(nonce), salt), nonce);
}

/** Replaces what a program holds. */
export async function writeProgram(storageAddress: string, flags: ChangeFlags & DataFlags): Promise<void> {
  await change(flags, operations.writeProgram(storageAddress, (await readData(flags, true))!), storageAddress);
}

/** Gives a field, or an item of its array, a value. */
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

/** Adds an item to the end of an array. */
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
  await change(flags, deletion(address, field, flags.index), address);
}

/** Replaces the rule of who may read and write. */
export async function updateAccess(storageAddress: string, flags: ChangeFlags & AccessFlags): Promise<void> {
  const access = readAccess(flags);
  if (access === undefined) {
    throw new ExitError("--access public, owner or restricted is needed.", exitCodes.usage);
  }
  await change(flags, operations.updateAccess(storageAddress, access), storageAddress);
}

async function readData(
  { data, file, binary }: DataFlags,
  isNeeded: boolean,
): Promise<operations.JsonText | Uint8Array | undefined> {
  const given = Object.entries({ data, file, binary }).filter(([, value]) => value !== undefined);
  if (given.length > 1) {
    const names = given.map(([name]) => `--${name}`).join(" and ");
    throw new ExitError(`${names} cannot be given together; leave all but one out.`, exitCodes.usage);
  }
  if (isNeeded && given.length === 0) {
    throw new ExitError("One of --data, --file and --binary is needed.", exitCodes.usage);
  }
  if (binary !== undefined) {
    return await readInput(binary, maxDocumentBytes);
  }
  return asWritten(
    data ?? (file === undefined ? undefined : (await readInput(file, maxDocumentBytes)).toString("utf8")),
  );
}

/** JSON as it was given: the node says what is wrong with it. */
function asWritten(text: string): operations.JsonText;
function asWritten(text: string | undefined): operations.JsonText | undefined;
function asWritten(text: string | undefined): operations.JsonText | undefined {
  return text === undefined ? undefined : new operations.JsonText(text);
}

function readAccess(flags: AccessFlags): operations.AccessRule | undefined {
  const { access, allow = [], blacklist = [], group = [] } = flags;
  if (access === undefined) {
    if (allow.length + blacklist.length + group.length > 0) {
      throw new ExitError("--allow, --blacklist and --group need an --access.", exitCodes.usage);
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

function deletion(storageAddress: string, field: string | undefined, index: number | undefined): Operation {
  if (field === undefined) {
    if (index !== undefined) {
      throw new ExitError("--index needs a FIELD.", exitCodes.usage);
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
      `VALUE must be JSON, not ${value.slice(0, 80)}; a text needs quotes: '"${value.slice(0, 40)}"'`,
      exitCodes.usage,
    );
  }
}

async function change(flags: ChangeFlags, operation: Operation, storageAddress: string, nonce?: number): Promise<void> {
  await submitAndReport(flags, operation, storageAddress, { storageAddress }, nonce);
}
