/** `gatehouse restore`: restores a node from a backup. */
import type { Command } from "commander";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Restored } from "../../node/data/restore.js";
import { listPeers, requestOk } from "../calls/request-node.js";
import { describeWarnings, printResult } from "../terminal/output.js";
import { startProgress } from "../terminal/progress.js";
import { addDataDirFlag, addTrustFlags } from "../usage/flags.js";
import { warningsOf } from "./backup.js";
import { runVerification } from "./verify-data.js";

const maxPeers = 8;
/**
 * Time after which a peer that still lists a node as online has not noticed its end, in milliseconds. A peer asks others
 * in each tick of its main loop (5 s by default), and waits for their responses.
 */
const endNoticedWithinMs = 15_000;
/** Interval of asking a peer for a node that it lists as online, in milliseconds. */
const pollMs = 250;

interface Flags {
  readonly dataDir: string;
  readonly json?: boolean;
}

export function addRestore(command: Command): void {
  addDataDirFlag(addTrustFlags(command.argument("<BACKUP>")), "New data directory; must be empty or not exist.")
    .option("--json", "Print JSON.")
    .addHelpText(
      "after",
      `
Compares every file with its hash, verifies the full database
like verify-data, prints the identity of the node, and queries
the peers in its peers file for their latest block. A
corrupt backup is not restored.

Exit codes: 0 restored, 1 not restored.

Examples:
  gatehouse restore /backup/monday --data-dir data/restored
  gatehouse start --data-dir data/restored`,
    )
    .action(async (folder: string, flags: Flags) => {
      await restore(resolve(folder), resolve(flags.dataDir), flags);
    });
}

async function restore(folder: string, dataDir: string, flags: Flags): Promise<void> {
  const { restoreBackup } = await import("../../node/data/restore.js");
  const bar = process.stderr.isTTY ? startProgress("files", 0) : undefined;
  const restored = await restoreBackup({
    ...{ folder, dataDir },
    onCopied: (done, total) => bar?.update(done, total),
    async verify(verification) {
      bar?.end();
      return (await runVerification(verification, flags.json === true)).findings;
    },
  });
  const { manifest, isAuthority, peers } = restored;
  const responses = await Promise.all(peers.slice(0, maxPeers).map((peer) => requestPeer(peer, manifest.node)));
  const warnings = [...warningsOf(manifest), ...warningsOfPeers(restored, responses.flat())];
  const { node, key, network, head, files, config } = manifest;
  const body = { dataDir, node, key, network, head, isAuthority, config, files: files.length, warnings };
  printResult(flags, body, () => describe(restored, dataDir, warnings));
}

interface PeerResponse {
  readonly url: string;
  readonly head: number;
  /** True if the peer is connected to a node with this key. */
  readonly knowsDuplicate: boolean;
}

/** Queries a peer. Returns nothing if it does not respond. */
async function requestPeer(url: string, node: string | null): Promise<PeerResponse[]> {
  try {
    const [head, knowsDuplicate] = await Promise.all([requestOk(url, "/chain/head"), isOnline(url, node)]);
    const { number } = JSON.parse(head) as { number: number };
    return [{ url, head: number, knowsDuplicate }];
  } catch {
    return [];
  }
}

/**
 * Returns true if a peer is connected to a node. For some seconds a peer lists a node that has stopped as online, so it is
 * asked until it has seen the node once more, or no longer lists it so.
 */
async function isOnline(url: string, node: string | null): Promise<boolean> {
  const lastSeen = async (): Promise<number | undefined> => {
    const peer = (await listPeers(url)).find(({ identity, status }) => identity === node && status.online);
    return peer === undefined ? undefined : (peer.status.timestamp ?? 0);
  };
  const first = await lastSeen();
  let last = first;
  for (let waitedMs = 0; last !== undefined && last === first && waitedMs < endNoticedWithinMs; waitedMs += pollMs) {
    await sleep(pollMs);
    last = await lastSeen();
  }
  return last !== undefined;
}

function warningsOfPeers({ manifest, isAuthority }: Restored, responses: readonly PeerResponse[]): string[] {
  const { number } = manifest.head;
  const latest = Math.max(number, ...responses.map(({ head }) => head));
  const duplicate = responses.find(({ knowsDuplicate }) => knowsDuplicate);
  const warnings: string[] = [];
  if (duplicate !== undefined) {
    warnings.push(
      `A node with this key is running: ${duplicate.url} is connected to it. Stop it before you start this one; two nodes with one key fail.`,
    );
  }
  if (latest > number) {
    const gap = `The backup ends with block ${number}, but peers are at block ${latest}.`;
    warnings.push(
      isAuthority
        ? `${gap} Start the node while they are reachable: it fetches their blocks before it produces one. Do not use --recover.`
        : `${gap} The node fetches the missing blocks from them.`,
    );
  } else if (isAuthority && responses.length === 0) {
    warnings.push(
      "This node is an authority, and no peer has reported the latest block. It produces no blocks until one does. Use --recover " +
        `only if no node has a block after ${number}, and the node that was backed up is gone.`,
    );
  }
  return warnings;
}

function describe({ manifest, isAuthority }: Restored, dataDir: string, warnings: readonly string[]): string[] {
  const { node, network, head, madeMs, engine, config } = manifest;
  return [
    `node      ${node ?? "none yet"}${isAuthority ? ", which produces blocks" : ""}`,
    `network   ${network}`,
    `block     ${head.number}`,
    `saved     ${new Date(madeMs).toISOString()}`,
    `restored  ${dataDir}: verified`,
    ...describeWarnings(warnings),
    "",
    ...(engine === "postgresql"
      ? [
          "The node used PostgreSQL. To use PostgreSQL again:",
          `  gatehouse database copy sqlite:${join(dataDir, "gatehouse.sqlite")} postgres://…`,
        ]
      : []),
    ...(config === null ? [] : [`Its options are in ${join(dataDir, config)}; check that they fit this machine.`]),
    `Start it:  gatehouse start --data-dir ${dataDir}`,
  ];
}
