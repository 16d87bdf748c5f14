/** Commands for the address book of a node on this machine, over the control service. */
import { createClient, type Transport } from "@connectrpc/connect";
import {
  type BookEntry,
  ControlService,
  type ListBookResponse,
  PeerOrigin,
} from "../../gen/gatehouse/control/v1/control_pb.js";
import { withControl } from "./calls/control.js";
import type { ControlFlags } from "./usage/flags.js";
import { ago, paint, print, shorten, table } from "./terminal/output.js";

/** Adds a peer and prints its entry. */
export async function addPeer(endpoint: string, flags: ControlFlags & { readonly identity?: string }): Promise<void> {
  const { entry } = await withControl(flags, (transport) =>
    createClient(ControlService, transport).addPeer({ endpoint, identity: flags.identity }),
  );
  print(...(flags.json === true ? [JSON.stringify(toJson(entry!))] : describeBook([entry!])));
}

/** Removes a peer. */
export async function removePeer(endpoint: string, flags: ControlFlags): Promise<void> {
  await withControl(flags, (transport) => createClient(ControlService, transport).removePeer({ endpoint }));
  print(flags.json === true ? JSON.stringify({ removed: endpoint }) : `Removed ${endpoint}.`);
}

/** Prints all entries. */
export async function showBook(flags: ControlFlags): Promise<void> {
  const entries = await withControl(flags, (transport) => listBook(transport));
  print(...(flags.json === true ? [JSON.stringify(entries.map(toJson))] : describeBook(entries)));
}

/** Returns the complete address book, page by page. Each page has the offset of the next one. */
async function listBook(transport: Transport): Promise<BookEntry[]> {
  const control = createClient(ControlService, transport);
  const all: BookEntry[] = [];
  let offset: number | undefined = 0;
  while (offset !== undefined) {
    const { entries, nextOffset }: ListBookResponse = await control.listBook({ offset });
    all.push(...entries);
    offset = nextOffset;
  }
  return all;
}

function describeBook(entries: readonly BookEntry[]): string[] {
  return table([
    ["ENDPOINT", "NAMED BY", "IDENTITY", "STATE", "BLOCK", "LAST SEEN", "FAILURES", ""],
    ...entries.map((entry) => [
      entry.endpoint,
      originOf(entry),
      shorten(entry.identity),
      entry.online
        ? paint(entry.verified ? "green" : "yellow", "online")
        : entry.verified || entry.failures > 0
          ? paint("red", "offline")
          : "not queried",
      entry.block === undefined ? "" : String(entry.block),
      ago(entry.lastSeenMs === undefined ? undefined : Number(entry.lastSeenMs)),
      String(entry.failures),
      entry.message ?? "",
    ]),
  ]);
}

function toJson(entry: BookEntry): object {
  const { $typeName: _, origin: __, block, lastSeenMs, nextTryMs, ...rest } = entry;
  return {
    ...rest,
    origin: originOf(entry),
    block: block === undefined ? null : Number(block),
    lastSeen: lastSeenMs === undefined ? null : Number(lastSeenMs),
    nextTry: nextTryMs === undefined ? null : Number(nextTryMs),
  };
}

function originOf({ origin }: BookEntry): string {
  return PeerOrigin[origin].toLowerCase();
}
