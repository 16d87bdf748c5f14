/** Commands of `gatehouse storage` that read programs. */
import type { Command } from "commander";
import { InputError } from "../../base/errors/start-error.js";
import { pagePath } from "../calls/request-node.js";
import { instant, type PageBody, printable, printPage, printResult, shorten } from "../terminal/output.js";
import {
  addPageFlags,
  addReadFlags,
  addVerifyFlags,
  isVerifying,
  type PageFlags,
  type ReadFlags,
  type VerifyFlags,
} from "../usage/flags.js";
import { ExitError } from "../usage/errors.js";
import { readAs } from "./caller.js";
import { changesHeading } from "./tx.js";

/** Flags of a list of programs, which has pages or an offset. */
interface ProgramListFlags extends ReadFlags, PageFlags {
  readonly offset?: string;
}

export function addStorageReads(storage: Command): void {
  const addCommand = (usage: string, description: string): Command =>
    addReadFlags(storage.command(usage).description(description));
  // Lists accept --verify, but hidden and with an error that says why a list cannot be verified.
  const addListCommand = (usage: string, description: string): Command => {
    const command = addPageFlags(addCommand(usage, description));
    return command.addOption(command.createOption("--verify <GENESIS>").argParser(rejectVerify).hideHelp());
  };

  addVerifyFlags(addCommand("get <ADDRESS> [FIELD]", "Print a program's data, or one field of it.")).action(
    async (address: string, field: string | undefined, flags: ReadFlags & VerifyFlags) => {
      const text = await readProgram(flags, address, field);
      printResult(flags, text, () => memberText(text, field === undefined ? "data" : "value"));
    },
  );

  addListCommand("history <ADDRESS>", "List the changes of a program, latest first.")
    .addHelpText(
      "after",
      `
Lists the names of changed fields; the transaction has the written value. The history is visible to all who may read the
program. A deleted program has no visible history.

Example:
  gatehouse storage history stor-… --limit 10`,
    )
    .action(async (address: string, flags: ReadFlags & PageFlags) => {
      const path = `/storage-program/${encodeURIComponent(address)}/history`;
      const text = await readAs(flags, pagePath(path, flags));
      printPage(flags, text, changesHeading, rowsOfHistory, "This node knows no changes.");
    });

  addListCommand("list <OWNER>", "List the programs of an owner, latest first.")
    .option("--offset <NUMBER>", "Number of programs to skip.")
    .action(async (owner: string, flags: ProgramListFlags) => {
      await listPrograms(flags, `/storage-program/owner/${encodeURIComponent(owner)}`);
    });

  addListCommand("search <TEXT>", "List programs whose name contains this text, latest first.")
    .option("--offset <NUMBER>", "Number of programs to skip.")
    .option("--exact", "Match the full name, case-sensitively.")
    .action(async (q: string, flags: ProgramListFlags & { readonly exact?: boolean }) => {
      await listPrograms(flags, "/storage-program/search", { q, exact: flags.exact?.toString() });
    });
}

function rejectVerify(): never {
  throw new InputError(
    "A list cannot be proved complete. Read each program with: gatehouse storage get ADDRESS --verify GENESIS",
  );
}

async function readProgram(flags: ReadFlags & VerifyFlags, storageAddress: string, field?: string): Promise<string> {
  if (!isVerifying(flags)) {
    const path = `/storage-program/${encodeURIComponent(storageAddress)}`;
    return field === undefined ? await readAs(flags, `${path}/all`) : await readField(flags, path, field);
  }
  const [{ readProved }, { StorageService }] = await Promise.all([
    import("./proved-reads.js"),
    import("../../../gen/gatehouse/storage/v1/storage_pb.js"),
  ]);
  const { getField, getProgramData } = StorageService.method;
  return field === undefined
    ? await readProved(flags, getProgramData, { storageAddress })
    : await readProved(flags, getField, { storageAddress, field });
}

/** Reads a field. Throws ExitError with code 1 if the response is about another one, since a proxy changed the path. */
async function readField(flags: ReadFlags, path: string, field: string): Promise<string> {
  const text = await readAs(flags, `${path}/field/${encodeURIComponent(field)}`);
  const { field: found } = JSON.parse(text) as { readonly field?: unknown };
  if (found !== field) {
    throw new ExitError(
      `The response is not about the field ${JSON.stringify(field)}: a proxy before the node changes paths. Give the address of the node itself with --node.`,
    );
  }
  return text;
}

/** Returns a member of the response unparsed, so that numbers retain all digits. */
function memberText(text: string, name: string): string {
  const start = text.indexOf(`"${name}":`) + name.length + 3;
  const rest = text.slice(start);
  const end = name === "value" ? rest.lastIndexOf(',"type":') : rest.lastIndexOf("}");
  return rest.slice(0, end);
}

interface HistoryBody extends PageBody {
  readonly changes: readonly {
    readonly blockNumber: number;
    readonly timestamp: number;
    readonly transactionHash: string;
    readonly sender: string;
    readonly kind: string;
    readonly fields: readonly string[];
  }[];
}

function rowsOfHistory({ changes }: HistoryBody): string[][] {
  return changes.map(({ blockNumber, timestamp, transactionHash, sender, kind, fields }) => [
    String(blockNumber),
    instant(timestamp),
    shorten(sender),
    [transactionHash, kind.replaceAll("_", " "), ...fields.map((field) => printable(JSON.stringify(field)))].join(" "),
  ]);
}

interface ListBody extends PageBody {
  readonly programs: readonly {
    readonly storageAddress: string;
    readonly programName: string;
    readonly owner: string;
    readonly encoding: string;
    readonly sizeBytes: number;
    readonly updatedAt: string;
  }[];
}

async function listPrograms(
  flags: ProgramListFlags,
  path: string,
  filters: Readonly<Record<string, string | undefined>> = {},
): Promise<void> {
  const { limit, offset, pageToken } = flags;
  // These routes take `limit` and `offset`, which are older than page tokens.
  const text = await readAs(flags, pagePath(path, { pageToken }, { ...filters, limit: limit?.toString(), offset }));
  const rowsOf = ({ programs }: ListBody) =>
    programs.map(({ storageAddress, programName, encoding, sizeBytes, updatedAt, owner }) => [
      ...[storageAddress, printable(programName), encoding],
      ...[String(sizeBytes), updatedAt, shorten(owner)],
    ]);
  const heading = ["ADDRESS", "NAME", "ENCODING", "BYTES", "CHANGED", "OWNER"];
  // With --offset the caller counts the items. A page token would apply the offset a second time, so none is printed.
  printPage(flags, text, heading, rowsOf, "There are no programs that you may read.", offset === undefined);
}
