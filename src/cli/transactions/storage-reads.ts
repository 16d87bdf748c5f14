/** What the commands of `gatehouse storage` do that read. */
import { askSuccessfully } from "../calls/ask-node.js";
import type { NetworkFlags, NodeFlags, VerifyFlags } from "../usage/flags.js";
import { print, shorten, table } from "../terminal/output.js";
import { loadKey, provedIdentity } from "./caller.js";
import type { ProvedFlags } from "./proved-reads.js";
import { isVerifying } from "./verifying.js";

/** Flags of a command that reads, as the holder of a key where one is given. */
export interface ReadFlags extends NetworkFlags, NodeFlags {
  readonly key?: string;
}

/** Which part of a list. */
export interface PageFlags extends ReadFlags {
  readonly limit?: string;
  readonly offset?: string;
}

/** Prints a program's data, or a field of it. */
export async function getProgram(
  address: string,
  field: string | undefined,
  flags: ReadFlags & VerifyFlags,
): Promise<void> {
  const text = isVerifying(flags) ? await prove(flags, address, field) : await believe(flags, address, field);
  print(flags.json === true ? text : partOf(text, field === undefined ? "data" : "value"));
}

async function believe(flags: ReadFlags, address: string, field: string | undefined): Promise<string> {
  const path = `/storage-program/${encodeURIComponent(address)}`;
  return await read(flags, field === undefined ? `${path}/all` : `${path}/field/${encodeURIComponent(field)}`);
}

async function prove(flags: ProvedFlags, storageAddress: string, field: string | undefined): Promise<string> {
  const [{ readProved }, { StorageService }] = await Promise.all([
    import("./proved-reads.js"),
    import("../../../gen/gatehouse/storage/v1/storage_pb.js"),
  ]);
  const { getField, getProgramData } = StorageService.method;
  return field === undefined
    ? await readProved(flags, getProgramData, { storageAddress })
    : await readProved(flags, getField, { storageAddress, field });
}

/** Prints a table of an owner's programs. */
export async function listPrograms(owner: string, flags: PageFlags): Promise<void> {
  await list(flags, `/storage-program/owner/${encodeURIComponent(owner)}`, new URLSearchParams());
}

/** Prints a table of the programs with a name. */
export async function searchPrograms(text: string, flags: PageFlags & { readonly exact?: boolean }): Promise<void> {
  const query = new URLSearchParams({ q: text, ...(flags.exact === true && { exact: "true" }) });
  await list(flags, "/storage-program/search", query);
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
        shorten(row.owner),
      ]),
    ]),
  );
}
