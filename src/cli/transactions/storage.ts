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
  wholeNumber,
} from "../usage/flags.js";
import { ExitError, exitCodes } from "../usage/errors.js";
import type { AccessFlags, CreateFlags, DataFlags, IndexFlags } from "./storage-changes.js";
import type { ProgramListFlags } from "./storage-reads.js";

export function addStorage(storage: Command): void {
  storage.addHelpText(
    "after",
    `
Changes are signed with --key and reach the data with the next block; the command waits for it.

Examples:
  gatehouse keygen --out alice.key
  gatehouse storage create notes --key alice.key --access public --data '{"title": "Hello", "tags": []}'
  gatehouse storage set stor-… title '"Hi"' --key alice.key
  gatehouse storage append stor-… tags '"first"' --key alice.key
  gatehouse storage get stor-… title
  gatehouse storage get stor-… title --verify 0x…  # believes no node
  gatehouse storage history stor-… --limit 10`,
  );
  addCreate(storage);
  addChanges(storage);
  addReads(storage);
}

function addCreate(storage: Command): void {
  changing(storage, "create <NAME>", "Make a program, owned by the key; prints its address.", withData, withAccess)
    .option("--metadata <JSON>", "A JSON object to keep with it.")
    .option("--salt <TEXT>", "Part of its address.", "")
    .action(async (name: string, flags: CreateFlags) => {
      const { createProgram } = await loadChanges();
      await createProgram(name, flags);
    });
}

function addChanges(storage: Command): void {
  changing(storage, "write <ADDRESS>", "Replace what a program holds.", withData).action(
    async (address: string, flags: ChangeFlags & DataFlags) => {
      const { writeProgram } = await loadChanges();
      await writeProgram(address, flags);
    },
  );

  changing(storage, "set <ADDRESS> <FIELD> <VALUE>", "Give a field a value (JSON).")
    .option("--index <NUMBER>", "Replace this item of the field's array instead.", wholeNumber)
    .action(async (address: string, field: string, value: string, flags: ChangeFlags & IndexFlags) => {
      const { setField } = await loadChanges();
      await setField(address, field, value, flags);
    });

  changing(storage, "append <ADDRESS> <FIELD> <VALUE>", "Add an item (JSON) to the end of a field's array.").action(
    async (address: string, field: string, value: string, flags: ChangeFlags) => {
      const { appendItem } = await loadChanges();
      await appendItem(address, field, value, flags);
    },
  );

  changing(storage, "delete <ADDRESS> [FIELD]", "Delete a program, or a field, or an item of a field's array.")
    .option("--index <NUMBER>", "Delete this item of the field's array.", wholeNumber)
    .action(async (address: string, field: string | undefined, flags: ChangeFlags & IndexFlags) => {
      const { deletePart } = await loadChanges();
      await deletePart(address, field, flags);
    });

  changing(storage, "access <ADDRESS>", "Replace the rule of who may read and write.", withAccess).action(
    async (address: string, flags: ChangeFlags & AccessFlags) => {
      const { updateAccess } = await loadChanges();
      await updateAccess(address, flags);
    },
  );
}

/** Loaded lazily, since only changes encode and sign transactions. */
const loadChanges = async () => await import("./storage-changes.js");

function addReads(storage: Command): void {
  addVerifyFlags(reading(storage, "get <ADDRESS> [FIELD]", "Print a program's data, or one field of it.")).action(
    async (address: string, field: string | undefined, flags: ReadFlags & VerifyFlags) => {
      const { getProgram } = await loadReads();
      await getProgram(address, field, flags);
    },
  );

  listing(storage, "history <ADDRESS>", "List what changed a program, newest first.")
    .addHelpText(
      "after",
      `
Of a field that was changed its name is listed; what was written is in the transaction. Whoever may read the program may know
this, too; of a program that is deleted nobody is told.

Example:
  gatehouse storage history stor-… --limit 10`,
    )
    .action(async (address: string, flags: ReadFlags & PageFlags) => {
      const { listHistory } = await import("./transaction-list.js");
      await listHistory(address, flags);
    });

  passing(listing(storage, "list <OWNER>", "List the programs of an owner, newest first.")).action(
    async (owner: string, flags: ProgramListFlags) => {
      const { listPrograms } = await loadReads();
      await listPrograms(owner, flags);
    },
  );

  passing(listing(storage, "search <TEXT>", "List programs whose name has this text, newest first."))
    .option("--exact", "The whole name, in this case.")
    .action(async (text: string, flags: ProgramListFlags & { readonly exact?: boolean }) => {
      const { searchPrograms } = await loadReads();
      await searchPrograms(text, flags);
    });
}

const loadReads = async () => await import("./storage-reads.js");

function changing(storage: Command, usage: string, description: string, ...more: ((c: Command) => Command)[]): Command {
  return more.reduce((built, add) => add(built), addChangeFlags(storage.command(usage).description(description)));
}

function reading(storage: Command, usage: string, description: string): Command {
  return addReadFlags(storage.command(usage).description(description));
}

function listing(storage: Command, usage: string, description: string): Command {
  const command = addPageFlags(reading(storage, usage, description));
  return command.addOption(command.createOption("--verify <GENESIS>").argParser(refuseToVerify).hideHelp());
}

function passing(command: Command): Command {
  return command.option("--offset <NUMBER>", "How many to pass over.");
}

function refuseToVerify(): never {
  throw new ExitError(
    "A list cannot be proved: nothing shows that nothing was left out. Read each program with: gatehouse storage get ADDRESS --verify GENESIS",
    exitCodes.usage,
  );
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
