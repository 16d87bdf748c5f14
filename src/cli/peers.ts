/** `gatehouse peers`: shows and changes the peers of a running node. */
import type { Command } from "commander";
import { listPeers, type PeerBody } from "./calls/peer-list.js";
import { addControlFlags, addNodeFlags, type ControlFlags, type NodeFlags } from "./usage/flags.js";
import { ago, paint, print, shorten, table } from "./terminal/output.js";

export function addPeers(peers: Command): void {
  addNodeFlags(peers.command("list", { isDefault: true }))
    .description("Show the peers that a running node knows.")
    .action(async (flags: NodeFlags) => {
      const peers = await listPeers(flags.node);
      print(...(flags.json === true ? [JSON.stringify(peers)] : describe(peers)));
    });

  addControlFlags(peers.command("add <URL>"))
    .description("Add a peer by the address of its internal port. Ends a node's dormancy.")
    .option("--identity <KEY>", "Key that the peer must prove. Default: any.")
    .option("--json", "Print JSON.")
    .addHelpText("after", "\nExample:\n  gatehouse peers add https://node.example:53551")
    .action(async (endpoint: string, flags: ControlFlags & { identity?: string }) => {
      const { addPeer } = await import("./peer-book.js");
      await addPeer(endpoint, flags);
    });

  addControlFlags(peers.command("remove <URL>"))
    .description("Remove a peer.")
    .option("--json", "Print JSON.")
    .action(async (endpoint: string, flags: ControlFlags) => {
      const { removePeer } = await import("./peer-book.js");
      await removePeer(endpoint, flags);
    });

  addControlFlags(peers.command("book"))
    .description("Show the full address book, including unverified peers.")
    .option("--json", "Print JSON.")
    .action(async (flags: ControlFlags) => {
      const { showBook } = await import("./peer-book.js");
      await showBook(flags);
    });
}

function describe(peers: readonly PeerBody[]): string[] {
  if (peers.length === 0) {
    return ["The node knows no peers; start it with --peers FILE, or add one: gatehouse peers add URL"];
  }
  return table([
    ["PEER", "IDENTITY", "STATE", "BLOCK", "LAST SEEN", "VERIFIED"],
    ...peers.map((peer) => [
      peer.connection.string,
      shorten(peer.identity),
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
