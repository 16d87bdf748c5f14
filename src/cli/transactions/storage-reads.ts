/** Implementation of the `gatehouse storage` commands that read programs. */
import type { PageFlags, ReadFlags, VerifyFlags } from "../usage/flags.js";
import { pagePath } from "../calls/page-path.js";
import { print, printable, shorten } from "../terminal/output.js";
import { type PageBody, printPage } from "../terminal/page.js";
import { readAs } from "./caller.js";
import type { ProvedFlags } from "./proved-reads.js";
import { isVerifying } from "./verifying.js";

/** Flags of a list of programs, which has pages or an offset. */
export interface ProgramListFlags extends ReadFlags, PageFlags {
  readonly offset?: string;
}

/** Prints the data of a program, or one field. */
export async function getProgram(
  address: string,
  field: string | undefined,
  flags: ReadFlags & VerifyFlags,
): Promise<void> {
  const text = isVerifying(flags)
    ? await readVerified(flags, address, field)
    : await readUnverified(flags, address, field);
  print(flags.json === true ? text : memberText(text, field === undefined ? "data" : "value"));
}

async function readUnverified(flags: ReadFlags, address: string, field: string | undefined): Promise<string> {
  const path = `/storage-program/${encodeURIComponent(address)}`;
  return await readAs(flags, field === undefined ? `${path}/all` : `${path}/field/${encodeURIComponent(field)}`);
}

async function readVerified(flags: ProvedFlags, storageAddress: string, field: string | undefined): Promise<string> {
  const [{ readProved }, { StorageService }] = await Promise.all([
    import("./proved-reads.js"),
    import("../../../gen/gatehouse/storage/v1/storage_pb.js"),
  ]);
  const { getField, getProgramData } = StorageService.method;
  return field === undefined
    ? await readProved(flags, getProgramData, { storageAddress })
    : await readProved(flags, getField, { storageAddress, field });
}

/** Prints a table of the programs of an owner. */
export async function listPrograms(owner: string, flags: ProgramListFlags): Promise<void> {
  await list(flags, `/storage-program/owner/${encodeURIComponent(owner)}`, {});
}

/** Prints a table of the programs with a text in their name. */
export async function searchPrograms(
  text: string,
  flags: ProgramListFlags & { readonly exact?: boolean },
): Promise<void> {
  await list(flags, "/storage-program/search", { q: text, exact: flags.exact?.toString() });
}

/** Returns a member of the response unparsed, so that numbers retain all digits. */
function memberText(text: string, name: string): string {
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

interface ListBody extends PageBody {
  readonly programs: readonly ProgramRow[];
}

async function list(
  flags: ProgramListFlags,
  path: string,
  filters: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const { limit, offset } = flags;
  // These routes take `limit` and `offset`, which are older than page tokens.
  const parameters = { ...filters, limit: limit?.toString(), offset };
  const text = await readAs(flags, pagePath(path, { pageToken: flags.pageToken }, parameters));
  if (flags.json === true) {
    print(text);
    return;
  }
  const { programs, ...page } = JSON.parse(text) as ListBody;
  const rows = programs.map((row) => [
    row.storageAddress,
    printable(row.programName),
    row.encoding,
    String(row.sizeBytes),
    row.updatedAt,
    shorten(row.owner),
  ]);
  const heading = ["ADDRESS", "NAME", "ENCODING", "BYTES", "CHANGED", "OWNER"];
  // With --offset the caller counts the items. A page token would apply the offset a second time, so none is printed.
  printPage(heading, rows, offset === undefined ? page : {}, "There are no programs that you may read.");
}
