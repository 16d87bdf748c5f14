/** `gatehouse peers`: shows and changes the peers of a running node. */
import type { Command } from "commander";
import type { BookEntry, ListBookResponse } from "../../gen/gatehouse/control/v1/control_pb.js";
import { listPeers, type PeerBody } from "./calls/request-node.js";
import { addControlFlags, addNodeFlags, type ControlFlags, type NodeFlags } from "./usage/flags.js";
import { ago, paint, printResult, shorten, table } from "./terminal/output.js";

export function addPeers(peers: Command): void {
  addNodeFlags(peers.command("list", { isDefault: true }))
    .description("Show the peers that a running node knows, by their public URLs. For peers remove, see peers book.")
    .action(async (flags: NodeFlags) => {
      const known = await listPeers(flags.node);
      printResult(flags, known, () => describePeers(known));
    });

  addControlFlags(peers.command("add <URL>"))
    .description("Add a peer by the address of its internal port. Ends a node's dormancy.")
    .option("--identity <KEY>", "Key that the peer must prove. Default: any.")
    .option("--json", "Print JSON.")
    .addHelpText("after", "\nExample:\n  gatehouse peers add https://node.example:53551")
    .action(async (endpoint: string, flags: ControlFlags & { identity?: string }) => {
      const { withControl, ControlService, originOf } = await loadControl();
      const { identity } = flags;
      const { entry } = await withControl(flags, ControlService, (control) => control.addPeer({ endpoint, identity }));
      printResult(flags, toJson(entry!, originOf), () => describeBook([entry!], originOf));
    });

  addControlFlags(peers.command("remove <URL>"))
    .description("Remove a peer by the address of its internal port, which peers book shows.")
    .option("--json", "Print JSON.")
    .action(async (endpoint: string, flags: ControlFlags) => {
      const { withControl, ControlService } = await loadControl();
      await withControl(flags, ControlService, (control) => control.removePeer({ endpoint }));
      printResult(flags, { removed: endpoint }, () => `Removed ${endpoint}.`);
    });

  addControlFlags(peers.command("book"))
    .description("Show the full address book, by the addresses of internal ports, including unverified peers.")
    .option("--json", "Print JSON.")
    .action(async (flags: ControlFlags) => {
      const { withControl, ControlService, originOf } = await loadControl();
      const all = await withControl(flags, ControlService, async (control) => {
        const listed: BookEntry[] = [];
        let offset: number | undefined = 0;
        while (offset !== undefined) {
          const { entries, nextOffset }: ListBookResponse = await control.listBook({ offset });
          listed.push(...entries);
          offset = nextOffset;
        }
        return listed;
      });
      const body = all.map((entry) => toJson(entry, originOf));
      printResult(flags, body, () => describeBook(all, originOf));
    });
}

type OriginOf = (entry: BookEntry) => string;

/** Loaded lazily, since the list of peers needs no gRPC. */
async function loadControl() {
  const [{ withControl }, { ControlService, PeerOrigin }] = await Promise.all([
    import("./calls/control.js"),
    import("../../gen/gatehouse/control/v1/control_pb.js"),
  ]);
  const originOf: OriginOf = ({ origin }) => PeerOrigin[origin].toLowerCase();
  return { withControl, ControlService, originOf };
}

function describePeers(peers: readonly PeerBody[]): string[] {
  if (peers.length === 0) {
    return ["The node knows no peers; start it with --peers FILE, or add one: gatehouse peers add URL"];
  }
  return table([
    ["PEER", "IDENTITY", "STATE", "BLOCK", "LAST SEEN", "VERIFIED"],
    ...peers.map(({ connection, identity, status, sync, verification }) => [
      connection.string,
      shorten(identity),
      status.ready ? paint("green", "ready") : status.online ? paint("yellow", "online") : paint("red", "offline"),
      sync.block === null ? "" : String(sync.block),
      ago(status.timestamp ?? undefined),
      [verification.status ? "yes" : "no", verification.message ?? ""].filter(Boolean).join(": "),
    ]),
  ]);
}

function describeBook(entries: readonly BookEntry[], originOf: OriginOf): string[] {
  return table([
    ["ENDPOINT", "NAMED BY", "IDENTITY", "STATE", "BLOCK", "LAST SEEN", "FAILURES", ""],
    ...entries.map((entry) => [
      entry.endpoint,
      originOf(entry),
      shorten(entry.identity),
      stateOf(entry),
      entry.block === undefined ? "" : String(entry.block),
      ago(entry.lastSeenMs === undefined ? undefined : Number(entry.lastSeenMs)),
      String(entry.failures),
      entry.message ?? "",
    ]),
  ]);
}

function stateOf({ online, verified, failures }: BookEntry): string {
  if (online) {
    return paint(verified ? "green" : "yellow", "online");
  }
  return verified || failures > 0 ? paint("red", "offline") : "not queried";
}

function toJson(entry: BookEntry, originOf: OriginOf): object {
  const { $typeName: _, origin: __, block, lastSeenMs, nextTryMs, ...rest } = entry;
  const toNumber = (value: bigint | undefined) => (value === undefined ? null : Number(value));
  return {
    ...rest,
    origin: originOf(entry),
    block: toNumber(block),
    lastSeen: toNumber(lastSeenMs),
    nextTry: toNumber(nextTryMs),
  };
}
