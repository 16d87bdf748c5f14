/** `gatehouse storage`: creates and changes storage programs. */
import type { Command } from "commander";
import type * as Operations from "../../../client/src/operations.js";
import type { Operation } from "../../../client/src/transaction.js";
import { InputError } from "../../base/errors/start-error.js";
import { describeJsonError } from "../../base/text/parse-json.js";
import { readInput, readTextInput } from "../usage/files.js";
import { addChangeFlags, type ChangeFlags, collectValues, parseInteger } from "../usage/flags.js";
import { loadKey } from "./caller.js";
import { addStorageReads } from "./storage-reads.js";
import { submitAndReport } from "./submit.js";

/** Sources of a document, at most one of which may be set. */
interface DataFlags {
  readonly data?: string;
  readonly file?: string;
  readonly binary?: string;
}

interface AccessFlags {
  readonly access?: Operations.AccessMode;
  readonly allow?: readonly string[];
  readonly blacklist?: readonly string[];
  readonly group?: readonly string[];
}

interface IndexFlags {
  readonly index?: number;
}

export function addStorage(storage: Command): void {
  storage.addHelpText(
    "after",
    `
Changes are signed with --key and take effect with the next block; the command waits for it.

Examples:
  gatehouse keygen --out alice.key
  gatehouse storage create notes --key alice.key --access public --data '{"title": "Hello", "tags": []}'
  gatehouse storage set stor-… title '"Hi"' --key alice.key
  gatehouse storage append stor-… tags '"first"' --key alice.key
  gatehouse storage get stor-… title
  gatehouse storage get stor-… title --verify 0x…  # trusts no node
  gatehouse storage history stor-… --limit 10`,
  );
  const addCommand = (usage: string, description: string): Command =>
    addChangeFlags(storage.command(usage).description(description));

  addAccessFlags(addDataFlags(addCommand("create <NAME>", "Create a program owned by the key, and print its address.")))
    .option("--metadata <JSON>", "JSON object to store with the program.")
    .option("--salt <TEXT>", "Salt of the program's address.", "")
    .action(createProgram);

  addDataFlags(addCommand("write <ADDRESS>", "Replace the data of a program.")).action(
    async (address: string, flags: ChangeFlags & DataFlags) => {
      const data = await readData(flags);
      if (data === undefined) {
        throw new InputError("One of --data, --file and --binary is required.");
      }
      await change(flags, address, ({ writeProgram }) => writeProgram(address, data));
    },
  );

  addCommand("set <ADDRESS> <FIELD> <VALUE>", "Set a field to a JSON value.")
    .option("--index <NUMBER>", "Replace only this item of the field's array.", parseInteger)
    .action(async (address: string, field: string, value: string, flags: ChangeFlags & IndexFlags) => {
      const { index } = flags;
      checkValue(value);
      await change(flags, address, ({ JsonText, setField, setItem }) =>
        index === undefined
          ? setField(address, field, new JsonText(value))
          : setItem(address, field, index, new JsonText(value)),
      );
    });

  addCommand("append <ADDRESS> <FIELD> <VALUE>", "Append a JSON item to a field's array.").action(
    async (address: string, field: string, value: string, flags: ChangeFlags) => {
      checkValue(value);
      await change(flags, address, ({ JsonText, appendItem }) => appendItem(address, field, new JsonText(value)));
    },
  );

  addCommand("delete <ADDRESS> [FIELD]", "Delete a program, a field, or an item of a field's array.")
    .option("--index <NUMBER>", "Delete this item of the field's array.", parseInteger)
    .action(async (address: string, field: string | undefined, flags: ChangeFlags & IndexFlags) => {
      const { index } = flags;
      if (field === undefined && index !== undefined) {
        throw new InputError("--index requires a FIELD.");
      }
      await change(flags, address, ({ deleteProgram, deleteField, deleteItem }) => {
        if (field === undefined) {
          return deleteProgram(address);
        }
        return index === undefined ? deleteField(address, field) : deleteItem(address, field, index);
      });
    });

  addAccessFlags(addCommand("access <ADDRESS>", "Replace the access rule of a program.")).action(
    async (address: string, flags: ChangeFlags & AccessFlags) => {
      const access = readAccess(flags);
      if (access === undefined) {
        throw new InputError("--access public, owner or restricted is required.");
      }
      await change(flags, address, ({ updateAccess }) => updateAccess(address, access));
    },
  );

  addStorageReads(storage);
}

function addDataFlags(command: Command): Command {
  return command
    .option("--data <JSON>", "JSON document.")
    .option("--file <FILE>", "File with the JSON document; - is stdin.")
    .option("--binary <FILE>", "File with binary data.");
}

function addAccessFlags(command: Command): Command {
  return command
    .addOption(command.createOption("--access <MODE>", "Read access.").choices(["public", "owner", "restricted"]))
    .option("--allow <KEY>", "Key that may read a restricted program; repeatable.", collectValues)
    .option("--blacklist <KEY>", "Key that may never read the program; repeatable.", collectValues)
    .option("--group <NAME:PERMISSIONS:KEYS>", "Group such as team:read,write:0x…,0x…; repeatable.", collectValues);
}

/** Loaded lazily, since only changes encode transactions. */
const loadOperations = () => import("../../../client/src/operations.js");

async function change(
  flags: ChangeFlags,
  storageAddress: string,
  operationOf: (operations: typeof Operations) => Operation,
): Promise<void> {
  await submitAndReport(flags, operationOf(await loadOperations()), { storageAddress });
}

async function createProgram(
  name: string,
  flags: ChangeFlags & DataFlags & AccessFlags & { readonly metadata?: string; readonly salt: string },
): Promise<void> {
  const { metadata, salt } = flags;
  const [operations, { programAddress }] = await Promise.all([
    loadOperations(),
    import("../../../client/src/transaction.js"),
  ]);
  if (metadata !== undefined) {
    checkJson("--metadata", metadata);
  }
  const operation = operations.createProgram({
    ...{ name, salt, data: await readData(flags), access: readAccess(flags) },
    ...(metadata !== undefined && { metadata: new operations.JsonText(metadata) }),
  });
  const { publicKey } = await loadKey(flags.key);
  const nonce = Date.now();
  const storageAddress = programAddress(publicKey, name, BigInt(nonce), salt);
  await submitAndReport(flags, operation, { storageAddress }, nonce);
}

/** Reads the document from its source; undefined if there is none. */
async function readData({ data, file, binary }: DataFlags): Promise<Operations.JsonText | Uint8Array | undefined> {
  const sources = Object.entries({ data, file, binary }).filter(([, value]) => value !== undefined);
  if (sources.length > 1) {
    const names = sources.map(([name]) => `--${name}`).join(" and ");
    throw new InputError(`${names} exclude each other; use one of them.`);
  }
  const [{ JsonText }, { maxDocumentBytes }] = await Promise.all([
    loadOperations(),
    import("../../storage/documents/document-bounds.js"),
  ]);
  if (binary !== undefined) {
    return await readInput(binary, maxDocumentBytes);
  }
  const text = data ?? (file === undefined ? undefined : await readTextInput(file, maxDocumentBytes));
  if (text === undefined) {
    return undefined;
  }
  checkJson(data === undefined ? file! : "--data", text);
  return new JsonText(text);
}

function readAccess(flags: AccessFlags): Operations.AccessRule | undefined {
  const { access: mode, allow: allowed = [], blacklist: blacklisted = [], group = [] } = flags;
  if (mode === undefined) {
    if (allowed.length + blacklisted.length + group.length > 0) {
      throw new InputError("--allow, --blacklist and --group require --access.");
    }
    return undefined;
  }
  const groups = group.map((text) => {
    const [name = "", permissions = "", keys = "", ...rest] = text.split(":");
    if (name === "" || rest.length > 0 || !/^(read|write)(,(read|write))?$/.test(permissions)) {
      throw new InputError(`--group must be NAME:read,write:KEY,KEY, not "${text}".`);
    }
    const members = keys.split(",").filter((member) => member !== "");
    return [name, { members, permissions: permissions.split(",") as Operations.AccessGroup["permissions"] }] as const;
  });
  const names = groups.map(([name]) => name);
  const repeated = names.find((name, i) => names.indexOf(name) !== i);
  if (repeated !== undefined) {
    throw new InputError(`--group names "${repeated}" twice; list all keys of a group in one.`);
  }
  if (names.includes("__proto__")) {
    throw new InputError("A group must not be named __proto__; choose another name.");
  }
  return { mode, allowed, blacklisted, groups: Object.fromEntries(groups) };
}

/** @param subject name of the text in the error, such as "VALUE". */
function checkJson(subject: string, text: string, hint = ""): void {
  try {
    JSON.parse(text);
  } catch {
    throw new InputError(`${subject} ${describeJsonError(text)}${hint}.`);
  }
}

function checkValue(value: string): void {
  checkJson("VALUE", value, `; put a string in quotes: '"${value.slice(0, 40)}"'`);
}
