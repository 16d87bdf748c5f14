/** `gatehouse storage`: creates, changes and reads storage programs. */
import type { Command } from "commander";
import {
  addChangeFlags,
  addPageFlags,
  addReadFlags,
  addVerifyFlags,
  type ChangeFlags,
  type PageFlags,
  type ReadFlags,
  type VerifyFlags,
  parseInteger,
} from "../usage/flags.js";
import { ExitError, exitCodes } from "../usage/errors.js";
import type { AccessFlags, CreateFlags, DataFlags, IndexFlags } from "./storage-changes.js";
import type { ProgramListFlags } from "./storage-reads.js";

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
  addCreate(storage);
  addChanges(storage);
  addReads(storage);
}

function addCreate(storage: Command): void {
  addChangeCommand(
    storage,
    "create <NAME>",
    "Create a program owned by the key, and print its address.",
    addDataFlags,
    addAccessFlags,
  )
    .option("--metadata <JSON>", "JSON object to store with the program.")
    .option("--salt <TEXT>", "Salt of the program's address.", "")
    .action(async (name: string, flags: CreateFlags) => {
      const { createProgram } = await loadChanges();
      await createProgram(name, flags);
    });
}

function addChanges(storage: Command): void {
  addChangeCommand(storage, "write <ADDRESS>", "Replace the data of a program.", addDataFlags).action(
    async (address: string, flags: ChangeFlags & DataFlags) => {
      const { writeProgram } = await loadChanges();
      await writeProgram(address, flags);
    },
  );

  addChangeCommand(storage, "set <ADDRESS> <FIELD> <VALUE>", "Set a field to a JSON value.")
    .option("--index <NUMBER>", "Replace only this item of the field's array.", parseInteger)
    .action(async (address: string, field: string, value: string, flags: ChangeFlags & IndexFlags) => {
      const { setField } = await loadChanges();
      await setField(address, field, value, flags);
    });

  addChangeCommand(storage, "append <ADDRESS> <FIELD> <VALUE>", "Append a JSON item to a field's array.").action(
    async (address: string, field: string, value: string, flags: ChangeFlags) => {
      const { appendItem } = await loadChanges();
      await appendItem(address, field, value, flags);
    },
  );

  addChangeCommand(storage, "delete <ADDRESS> [FIELD]", "Delete a program, a field, or an item of a field's array.")
    .option("--index <NUMBER>", "Delete this item of the field's array.", parseInteger)
    .action(async (address: string, field: string | undefined, flags: ChangeFlags & IndexFlags) => {
      const { deletePart } = await loadChanges();
      await deletePart(address, field, flags);
    });

  addChangeCommand(storage, "access <ADDRESS>", "Replace the access rule of a program.", addAccessFlags).action(
    async (address: string, flags: ChangeFlags & AccessFlags) => {
      const { updateAccess } = await loadChanges();
      await updateAccess(address, flags);
    },
  );
}

/** Loaded lazily, since only changes encode and sign transactions. */
const loadChanges = async () => await import("./storage-changes.js");

function addReads(storage: Command): void {
  addVerifyFlags(
    addReadCommand(storage, "get <ADDRESS> [FIELD]", "Print a program's data, or one field of it."),
  ).action(async (address: string, field: string | undefined, flags: ReadFlags & VerifyFlags) => {
    const { getProgram } = await loadReads();
    await getProgram(address, field, flags);
  });

  addListCommand(storage, "history <ADDRESS>", "List the changes of a program, latest first.")
    .addHelpText(
      "after",
      `
Lists the names of changed fields; the transaction has the written value. The history is visible to all who may read the
program. A deleted program has no visible history.

Example:
  gatehouse storage history stor-… --limit 10`,
    )
    .action(async (address: string, flags: ReadFlags & PageFlags) => {
      const { listHistory } = await import("./transaction-list.js");
      await listHistory(address, flags);
    });

  addOffsetFlag(addListCommand(storage, "list <OWNER>", "List the programs of an owner, latest first.")).action(
    async (owner: string, flags: ProgramListFlags) => {
      const { listPrograms } = await loadReads();
      await listPrograms(owner, flags);
    },
  );

  addOffsetFlag(addListCommand(storage, "search <TEXT>", "List programs whose name contains this text, latest first."))
    .option("--exact", "Match the full name, case-sensitively.")
    .action(async (text: string, flags: ProgramListFlags & { readonly exact?: boolean }) => {
      const { searchPrograms } = await loadReads();
      await searchPrograms(text, flags);
    });
}

const loadReads = async () => await import("./storage-reads.js");

/** Adds a command that changes a program, with flags in addition to those of every change. */
function addChangeCommand(
  storage: Command,
  usage: string,
  description: string,
  ...addFlags: ((command: Command) => Command)[]
): Command {
  return addFlags.reduce(
    (command, add) => add(command),
    addChangeFlags(storage.command(usage).description(description)),
  );
}

function addReadCommand(storage: Command, usage: string, description: string): Command {
  return addReadFlags(storage.command(usage).description(description));
}

function addListCommand(storage: Command, usage: string, description: string): Command {
  // Accept --verify, but hidden and with an error that says why a list cannot be verified.
  const command = addPageFlags(addReadCommand(storage, usage, description));
  return command.addOption(command.createOption("--verify <GENESIS>").argParser(rejectVerify).hideHelp());
}

function addOffsetFlag(command: Command): Command {
  return command.option("--offset <NUMBER>", "Number of programs to skip.");
}

function rejectVerify(): never {
  throw new ExitError(
    "A list cannot be proved complete. Read each program with: gatehouse storage get ADDRESS --verify GENESIS",
    exitCodes.usage,
  );
}

function addDataFlags(command: Command): Command {
  return command
    .option("--data <JSON>", "JSON document.")
    .option("--file <FILE>", "File with the JSON document; - is stdin.")
    .option("--binary <FILE>", "File with binary data.");
}

function addAccessFlags(command: Command): Command {
  const collect = (value: string, previous: string[] = []): string[] => [...previous, value];
  return command
    .addOption(command.createOption("--access <MODE>", "Who may read.").choices(["public", "owner", "restricted"]))
    .option("--allow <KEY>", "Key that may read a restricted program; repeatable.", collect)
    .option("--blacklist <KEY>", "Key that may never read the program; repeatable.", collect)
    .option("--group <NAME:PERMISSIONS:KEYS>", "Group such as team:read,write:0x…,0x…; repeatable.", collect);
}
