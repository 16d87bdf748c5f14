/** `gatehouse peers`: shows whom a running node knows. */
import type { Command } from "commander";
import { addNodeFlags, askNode } from "./ask-node.js";
import { duration, paint, print, table } from "./output.js";

interface PeerBody {
  connection: { string: string };
  identity: string;
  verification: { status: boolean; message: string | null };
  sync: { status: boolean; block: number | null };
  status: { online: boolean; timestamp: number | null; ready: boolean };
}

/** Adds the command. */
export function addPeers(program: Command): void {
  addNodeFlags(program.command("peers"))
    .description("Show whom a running node knows.")
    .action(async (flags: { node: string; json?: boolean }) => {
      const { text } = await askNode(flags.node, "/peerlist");
      print(...(flags.json === true ? [text] : describe(JSON.parse(text) as PeerBody[])));
    });
}

function describe(peers: readonly PeerBody[]): string[] {
  if (peers.length === 0) {
    return ["The node knows no peers; start it with --peers FILE."];
  }
  return table([
    ["PEER", "IDENTITY", "STATE", "BLOCK", "LAST SEEN", "VERIFIED"],
    ...peers.map((peer) => [
      peer.connection.string,
      peer.identity === "" ? "unknown" : `${peer.identity.slice(0, 10)}…${peer.identity.slice(-4)}`,
      peer.status.ready
        ? paint("green", "ready")
        : peer.status.online
          ? paint("yellow", "online")
          : paint("red", "offline"),
      peer.sync.block === null ? "" : String(peer.sync.block),
      peer.status.timestamp === null
        ? "never"
        : `${duration(Math.max(0, Date.now() - peer.status.timestamp) / 1000)} ago`,
      peer.verification.status ? "yes" : `no: ${peer.verification.message ?? ""}`,
    ]),
  ]);
}
