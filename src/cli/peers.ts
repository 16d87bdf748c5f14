/** `gatehouse peers`: whom a running node knows, and whom it should. */
import { createClient, type Transport } from "@connectrpc/connect";
import type { Command } from "commander";
import {
  type BookEntry,
  ControlService,
  type ListBookResponse,
  PeerOrigin,
} from "../../gen/gatehouse/control/v1/control_pb.js";
import { addNodeFlags, askNode } from "./ask-node.js";
import { addControlFlags, type ControlFlags, withControl } from "./control.js";
import { duration, paint, print, table } from "./output.js";

interface PeerBody {
  connection: { string: string };
  identity: string;
  verification: { status: boolean; message: string | null };
  sync: { status: boolean; block: number | null };
  status: { online: boolean; timestamp: number | null; ready: boolean };
}

interface BookFlags extends ControlFlags {
  readonly json?: boolean;
}

/** Adds the commands. */
export function addPeers(program: Command): void {
  const peers = program.command("peers").description("Show whom a running node knows, and change it.");

  addNodeFlags(peers.command("list", { isDefault: true }))
    .description("Show the peers that a running node knows.")
    .action(async (flags: { node: string; json?: boolean }) => {
      const peers = await listPeers(flags.node);
      print(...(flags.json === true ? [JSON.stringify(peers)] : describe(peers)));
    });

  addControlFlags(peers.command("add <URL>"))
    .description("Add a peer by the address of its internal port; a dormant node wakes.")
    .option("--identity <KEY>", "The key that it must prove; any when not given.")
    .option("--json", "Print JSON.")
    .addHelpText("after", "\nExample:\n  gatehouse peers add https://node.example:53551")
    .action(async (endpoint: string, flags: BookFlags & { identity?: string }) => {
      const { entry } = await withControl(flags, (transport) =>
        createClient(ControlService, transport).addPeer({ endpoint, identity: flags.identity }),
      );
      print(...(flags.json === true ? [JSON.stringify(toJson(entry!))] : describeBook([entry!])));
    });

  addControlFlags(peers.command("remove <URL>"))
    .description("Forget a peer.")
    .option("--json", "Print JSON.")
    .action(async (endpoint: string, flags: BookFlags) => {
      await withControl(flags, (transport) => createClient(ControlService, transport).removePeer({ endpoint }));
      print(flags.json === true ? JSON.stringify({ removed: endpoint }) : `${endpoint} is forgotten.`);
    });

  addControlFlags(peers.command("book"))
    .description("Show the whole address book, unverified peers included.")
    .option("--json", "Print JSON.")
    .action(async (flags: BookFlags) => {
      const entries = await withControl(flags, (transport) => listBook(transport));
      print(...(flags.json === true ? [JSON.stringify(entries.map(toJson))] : describeBook(entries)));
    });
}

/** A node with very many peers tells them in parts. */
async function listPeers(node: string): Promise<PeerBody[]> {
  const peers: PeerBody[] = [];
  for (;;) {
    const { text } = await askNode(node, `/peerlist?offset=${peers.length}`);
    const part = JSON.parse(text) as PeerBody[];
    if (part.length === 0) {
      return peers;
    }
    peers.push(...part);
  }
}

/** The address book, of whose parts each says where the next one begins. */
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

function describe(peers: readonly PeerBody[]): string[] {
  if (peers.length === 0) {
    return ["The node knows no peers; start it with --peers FILE, or add one: gatehouse peers add URL"];
  }
  return table([
    ["PEER", "IDENTITY", "STATE", "BLOCK", "LAST SEEN", "VERIFIED"],
    ...peers.map((peer) => [
      peer.connection.string,
      shortKey(peer.identity),
      peer.status.ready
        ? paint("green", "ready")
        : peer.status.online
          ? paint("yellow", "online")
          : paint("red", "offline"),
      peer.sync.block === null ? "" : String(peer.sync.block),
      ago(peer.status.timestamp ?? undefined),
      [peer.verification.status ? "yes" : "no", peer.verification.message ?? ""].filter(Boolean).join(": "),
    ]),
  ]);
}

function describeBook(entries: readonly BookEntry[]): string[] {
  return table([
    ["ENDPOINT", "NAMED BY", "IDENTITY", "STATE", "BLOCK", "LAST SEEN", "FAILURES", ""],
    ...entries.map((entry) => [
      entry.endpoint,
      originOf(entry),
      shortKey(entry.identity),
      entry.online
        ? paint(entry.verified ? "green" : "yellow", "online")
        : entry.verified || entry.failures > 0
          ? paint("red", "offline")
          : "not asked",
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

function shortKey(identity: string): string {
  return identity === "" ? "unknown" : `${identity.slice(0, 10)}…${identity.slice(-4)}`;
}

function ago(timeMs: number | undefined): string {
  return timeMs === undefined ? "never" : `${duration(Math.max(0, Date.now() - timeMs) / 1000)} ago`;
}
