/** `gatehouse storage`: makes, changes and reads storage programs. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Command, InvalidArgumentError } from "commander";
import { readFile } from "node:fs/promises";
import { buffer } from "node:stream/consumers";
import type { ProgramDataSchema } from "../../gen/gatehouse/storage/v1/operation_pb.js";
import { type AccessControlSchema, AccessMode, AccessPermission } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { programAddress } from "../storage/write.js";
import { addNodeFlags, askSuccessfully } from "./ask-node.js";
import { addKeyFlag, addNetworkFlag, provedIdentity, loadKey } from "./caller.js";
import { ExitError, print, table } from "./output.js";
import { addChangeFlags, type ChangeFlags, type StorageChange, submitAndReport } from "./submit.js";

interface DataFlags {
  readonly data?: string;
  readonly file?: string;
  readonly binary?: string;
}

interface AccessFlags {
  readonly access?: "public" | "owner" | "restricted";
  readonly allow?: string[];
  readonly blacklist?: string[];
  readonly group?: string[];
}

type ReadFlags = Pick<ChangeFlags, "node" | "key" | "network" | "json">;
type PageFlags = ReadFlags & { readonly limit?: string; readonly offset?: string; readonly exact?: boolean };

/** Adds the commands. */
export function addStorage(program: Command): void {
  const storage = program
    .command("storage")
    .description("Make, change and read storage programs.")
    .addHelpText(
      "after",
      `
Changes are signed with --key and reach the data with the next block; the command waits for it.

Examples:
  gatehouse keygen --out alice.key
  gatehouse storage create notes --key alice.key --access public --data '{"title": "Hello", "tags": []}'
  gatehouse storage set stor-… title '"Hi"' --key alice.key
  gatehouse storage append stor-… tags '"first"' --key alice.key
  gatehouse storage get stor-… title`,
    );
  addCreate(storage);
  addChanges(storage);
  addReads(storage);
}

function addCreate(storage: Command): void {
  changing(storage, "create <NAME>", "Make a program, owned by the key; prints its address.", withData, withAccess)
    .option("--metadata <JSON>", "A JSON object to keep with it.")
    .option("--salt <TEXT>", "Part of its address.", "")
    .action(
      async (name: string, flags: ChangeFlags & DataFlags & AccessFlags & { metadata?: string; salt: string }) => {
        const { metadata, salt } = flags;
        const key = await loadKey(flags.key);
        const nonce = Date.now();
        const value = {
          programName: name,
          salt,
          data: await readData(flags, false),
          metadata,
          access: toAccess(flags),
        };
        const address = programAddress(key.publicKey, name, BigInt(nonce), salt);
        await change(flags, { case: "createProgram", value }, address, nonce);
      },
    );
}

function addChanges(storage: Command): void {
  changing(storage, "write <ADDRESS>", "Replace what a program holds.", withData).action(
    async (address: string, flags: ChangeFlags & DataFlags) => {
      await change(
        flags,
        { case: "writeProgram", value: { storageAddress: address, data: await readData(flags, true) } },
        address,
      );
    },
  );

  changing(storage, "set <ADDRESS> <FIELD> <VALUE>", "Give a field a value (JSON).")
    .option("--index <NUMBER>", "Replace this item of the field's array instead.", wholeNumber)
    .action(async (address: string, field: string, value: string, flags: ChangeFlags & { index?: number }) => {
      checkValue(value);
      const place = { storageAddress: address, field, value };
      await change(
        flags,
        flags.index === undefined
          ? { case: "setField", value: place }
          : { case: "setItem", value: { ...place, index: flags.index } },
        address,
      );
    });

  changing(storage, "append <ADDRESS> <FIELD> <VALUE>", "Add an item (JSON) to the end of a field's array.").action(
    async (address: string, field: string, value: string, flags: ChangeFlags) => {
      checkValue(value);
      await change(flags, { case: "appendItem", value: { storageAddress: address, field, value } }, address);
    },
  );

  changing(storage, "delete <ADDRESS> [FIELD]", "Delete a program, or a field, or an item of a field's array.")
    .option("--index <NUMBER>", "Delete this item of the field's array.", wholeNumber)
    .action(async (address: string, field: string | undefined, flags: ChangeFlags & { index?: number }) => {
      await change(flags, deletion(address, field, flags.index), address);
    });

  changing(storage, "access <ADDRESS>", "Replace the rule of who may read and write.", withAccess).action(
    async (address: string, flags: ChangeFlags & AccessFlags) => {
      const access = toAccess(flags);
      if (access === undefined) {
        throw new ExitError("--access public, owner or restricted is needed.", 2);
      }
      await change(flags, { case: "updateAccess", value: { storageAddress: address, access } }, address);
    },
  );
}

function addReads(storage: Command): void {
  reading(storage, "get <ADDRESS> [FIELD]", "Print a program's data, or one field of it.").action(
    async (address: string, field: string | undefined, flags: ReadFlags) => {
      const path = `/storage-program/${encodeURIComponent(address)}`;
      const text = await read(
        flags,
        field === undefined ? `${path}/all` : `${path}/field/${encodeURIComponent(field)}`,
      );
      print(flags.json === true ? text : partOf(text, field === undefined ? "data" : "value"));
    },
  );

  paged(reading(storage, "list <OWNER>", "List the programs of an owner, newest first.")).action(
    async (owner: string, flags: PageFlags) => {
      await list(flags, `/storage-program/owner/${encodeURIComponent(owner)}`, new URLSearchParams());
    },
  );

  paged(reading(storage, "search <TEXT>", "List programs whose name has this text, newest first."))
    .option("--exact", "The whole name, in this case.")
    .action(async (text: string, flags: PageFlags) => {
      const query = new URLSearchParams({ q: text, ...(flags.exact === true && { exact: "true" }) });
      await list(flags, "/storage-program/search", query);
    });
}

function changing(storage: Command, usage: string, description: string, ...more: ((c: Command) => Command)[]): Command {
  return more.reduce((built, add) => add(built), addChangeFlags(storage.command(usage).description(description)));
}

function reading(storage: Command, usage: string, description: string): Command {
  const command = addKeyFlag(storage.command(usage).description(description), "Read as the holder of this key.");
  return addNodeFlags(addNetworkFlag(command));
}

function paged(command: Command): Command {
  return command
    .option("--limit <NUMBER>", "How many, 1 to 200.")
    .option("--offset <NUMBER>", "How many to pass over.");
}

function withData(command: Command): Command {
  return command
    .option("--data <JSON>", "The document.")
    .option("--file <FILE>", "A file with the document; - is stdin.")
    .option("--binary <FILE>", "A file with bytes.");
}

function withAccess(command: Command): Command {
  const several = (value: string, before: string[] = []): string[] => [...before, value];
  return command
    .addOption(command.createOption("--access <MODE>", "Who may read.").choices(["public", "owner", "restricted"]))
    .option("--allow <KEY>", "May read a restricted program; again for more.", several)
    .option("--blacklist <KEY>", "May never read it; again for more.", several)
    .option("--group <NAME:PERMISSIONS:KEYS>", "Such as team:read,write:0x…,0x…; again for more.", several);
}

async function readData(
  { data, file, binary }: DataFlags,
  isNeeded: boolean,
): Promise<MessageInitShape<typeof ProgramDataSchema> | undefined> {
  const given = [data, file, binary].filter((flag) => flag !== undefined).length;
  if (given > 1 || (isNeeded && given === 0)) {
    throw new ExitError("One of --data, --file and --binary is needed.", 2);
  }
  if (binary !== undefined) {
    return { data: { case: "binary", value: await readBytes(binary) } };
  }
  const text = data ?? (file === undefined ? undefined : (await readBytes(file)).toString("utf8"));
  return text === undefined ? undefined : { data: { case: "json", value: text } };
}

async function readBytes(path: string): Promise<Buffer> {
  return await (path === "-" ? buffer(process.stdin) : readFile(path)).catch((error: unknown) => {
    throw new ExitError(`The file ${path} cannot be read: ${(error as Error).message}.`, 2);
  });
}

const modes = { public: AccessMode.PUBLIC, owner: AccessMode.OWNER, restricted: AccessMode.RESTRICTED };

function toAccess(flags: AccessFlags): MessageInitShape<typeof AccessControlSchema> | undefined {
  const { access, allow = [], blacklist = [], group = [] } = flags;
  if (access === undefined) {
    if (allow.length + blacklist.length + group.length > 0) {
      throw new ExitError("--allow, --blacklist and --group need an --access.", 2);
    }
    return undefined;
  }
  const groups = Object.fromEntries(
    group.map((text) => {
      const [name = "", permissions = "", keys = "", ...rest] = text.split(":");
      if (name === "" || rest.length > 0 || !/^(read|write)(,(read|write))?$/.test(permissions)) {
        throw new ExitError(`--group must be NAME:read,write:KEY,KEY, not "${text}".`, 2);
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
      throw new ExitError("--index needs a FIELD.", 2);
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
      2,
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

async function read(flags: ReadFlags, path: string): Promise<string> {
  const headers = flags.key === undefined ? {} : await provedIdentity(await loadKey(flags.key), flags);
  return await askSuccessfully(flags.node, path, { headers });
}

/** A member of the answer as the node wrote it: numbers keep all their digits. */
function partOf(text: string, name: string): string {
  const start = text.indexOf(`"${name}":`) + name.length + 3;
  const rest = text.slice(start);
  const end = name === "value" ? rest.lastIndexOf(',"type":') : rest.lastIndexOf("}");
  return rest.slice(0, end);
}

interface ProgramRow {
  readonly storageAddress: string;
  readonly programName: string;
  readonly owner: string;
  readonly encoding: string;
  readonly sizeBytes: number;
  readonly updatedAt: string;
}

async function list(flags: PageFlags, path: string, query: URLSearchParams): Promise<void> {
  for (const name of ["limit", "offset"] as const) {
    if (flags[name] !== undefined) {
      query.set(name, flags[name]);
    }
  }
  const text = await read(flags, `${path}?${query.toString()}`);
  if (flags.json === true) {
    print(text);
    return;
  }
  const { programs } = JSON.parse(text) as { programs: ProgramRow[] };
  if (programs.length === 0) {
    print("No programs that you may read.");
    return;
  }
  print(
    ...table([
      ["ADDRESS", "NAME", "ENCODING", "BYTES", "CHANGED", "OWNER"],
      ...programs.map((row) => [
        row.storageAddress,
        row.programName,
        row.encoding,
        String(row.sizeBytes),
        row.updatedAt,
        `${row.owner.slice(0, 10)}…${row.owner.slice(-4)}`,
      ]),
    ]),
  );
}

function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) {
    throw new InvalidArgumentError("It must be a whole number from 0.");
  }
  return Number(text);
}
