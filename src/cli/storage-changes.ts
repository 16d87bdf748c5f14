/** What the commands of `gatehouse storage` do that change something. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ProgramDataSchema } from "../../gen/gatehouse/storage/v1/operation_pb.js";
import { type AccessControlSchema, AccessMode, AccessPermission } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { maxDocumentBytes } from "../storage/json-check.js";
import { programAddress } from "../storage/write.js";
import { loadKey } from "./caller.js";
import { ExitError, exitCodes } from "./errors.js";
import type { ChangeFlags } from "./flags.js";
import { readInput } from "./read-input.js";
import { type StorageChange, submitAndReport } from "./submit.js";

/** Where a document is taken from. */
export interface DataFlags {
  readonly data?: string;
  readonly file?: string;
  readonly binary?: string;
}

/** Who may read and write. */
export interface AccessFlags {
  readonly access?: "public" | "owner" | "restricted";
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
  const value = { programName: name, salt, data, metadata, access: toAccess(flags) };
  const address = programAddress(key.publicKey, name, BigInt(nonce), salt);
  await change(flags, { case: "createProgram", value }, address, nonce);
}

/** Replaces what a program holds. */
export async function writeProgram(storageAddress: string, flags: ChangeFlags & DataFlags): Promise<void> {
  const value = { storageAddress, data: await readData(flags, true) };
  await change(flags, { case: "writeProgram", value }, storageAddress);
}

/** Gives a field, or an item of its array, a value. */
export async function setField(
  storageAddress: string,
  field: string,
  value: string,
  flags: ChangeFlags & IndexFlags,
): Promise<void> {
  checkValue(value);
  const place = { storageAddress, field, value };
  const { index } = flags;
  await change(
    flags,
    index === undefined ? { case: "setField", value: place } : { case: "setItem", value: { ...place, index } },
    storageAddress,
  );
}

/** Adds an item to the end of an array. */
export async function appendItem(
  storageAddress: string,
  field: string,
  value: string,
  flags: ChangeFlags,
): Promise<void> {
  checkValue(value);
  await change(flags, { case: "appendItem", value: { storageAddress, field, value } }, storageAddress);
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
  const access = toAccess(flags);
  if (access === undefined) {
    throw new ExitError("--access public, owner or restricted is needed.", exitCodes.usage);
  }
  await change(flags, { case: "updateAccess", value: { storageAddress, access } }, storageAddress);
}

async function readData(
  { data, file, binary }: DataFlags,
  isNeeded: boolean,
): Promise<MessageInitShape<typeof ProgramDataSchema> | undefined> {
  const given = Object.entries({ data, file, binary }).filter(([, value]) => value !== undefined);
  if (given.length > 1) {
    const names = given.map(([name]) => `--${name}`).join(" and ");
    throw new ExitError(`${names} cannot be given together; leave all but one out.`, exitCodes.usage);
  }
  if (isNeeded && given.length === 0) {
    throw new ExitError("One of --data, --file and --binary is needed.", exitCodes.usage);
  }
  if (binary !== undefined) {
    return { data: { case: "binary", value: await readInput(binary, maxDocumentBytes) } };
  }
  const text = data ?? (file === undefined ? undefined : (await readInput(file, maxDocumentBytes)).toString("utf8"));
  return text === undefined ? undefined : { data: { case: "json", value: text } };
}

const modes = { public: AccessMode.PUBLIC, owner: AccessMode.OWNER, restricted: AccessMode.RESTRICTED };

function toAccess(flags: AccessFlags): MessageInitShape<typeof AccessControlSchema> | undefined {
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
      const members = keys.split(",").filter((member) => member !== "");
      return [
        name,
        {
          members,
          permissions: permissions
            .split(",")
            .map((word) => (word === "read" ? AccessPermission.READ : AccessPermission.WRITE)),
        },
      ];
    }),
  );
  return { mode: modes[access], allowed: allow, blacklisted: blacklist, groups };
}

function deletion(storageAddress: string, field: string | undefined, index: number | undefined): StorageChange {
  if (field === undefined) {
    if (index !== undefined) {
      throw new ExitError("--index needs a FIELD.", exitCodes.usage);
    }
    return { case: "deleteProgram", value: { storageAddress } };
  }
  return index === undefined
    ? { case: "deleteField", value: { storageAddress, field } }
    : { case: "deleteItem", value: { storageAddress, field, index } };
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

async function change(
  flags: ChangeFlags,
  operation: StorageChange,
  storageAddress: string,
  nonce?: number,
): Promise<void> {
  const whole = { case: "storage" as const, value: { operation } };
  await submitAndReport(flags, whole, storageAddress, { storageAddress }, nonce);
}
