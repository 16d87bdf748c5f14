/** Implementation of `gatehouse restore`. */
import { join } from "node:path";
import { type Restored, type RestoreDeps, restoreBackup } from "../../node/data/restore.js";
import { requestOk } from "../calls/request-node.js";
import { listPeers } from "../calls/peer-list.js";
import { describeWarnings, print } from "../terminal/output.js";
import { startProgress } from "../terminal/progress.js";
import { warningsOf } from "./run-backup.js";
import { runVerification } from "./stored-data.js";

/** Limit on the number of peers to query. */
const maxPeers = 8;

/** Restores a backup and prints its summary. */
export async function runRestore(paths: Pick<RestoreDeps, "folder" | "dataDir">, json: boolean): Promise<void> {
  const bar = process.stderr.isTTY ? startProgress("files", 0) : undefined;
  const restored = await restoreBackup({
    ...paths,
    onCopied: (done, total) => bar?.update(done, total),
    async verify(verification) {
      bar?.end();
      return (await runVerification(verification, json)).findings;
    },
  });
  const { manifest, isAuthority } = restored;
  const responses = await Promise.all(
    restored.peers.slice(0, maxPeers).map((peer) => requestPeer(peer, manifest.node)),
  );
  const warnings = [
    ...warningsOf(manifest),
    ...warningsOfPeers(
      restored,
      responses.flatMap((response) => response ?? []),
    ),
  ];
  const { dataDir } = paths;
  if (json) {
    const { node, key, network, head, files, config } = manifest;
    print(JSON.stringify({ dataDir, node, key, network, head, isAuthority, config, files: files.length, warnings }));
    return;
  }
  print(...describe(restored, dataDir, warnings));
}

interface PeerResponse {
  readonly url: string;
  readonly head: number;
  /** True if the peer is connected to a node with this key. */
  readonly knowsDuplicate: boolean;
}

/** Queries a peer; undefined if it does not respond. */
async function requestPeer(url: string, node: string | null): Promise<PeerResponse | undefined> {
  try {
    const [head, list] = await Promise.all([requestOk(url, "/chain/head"), listPeers(url)]);
    const { number } = JSON.parse(head) as { number: number };
    return {
      url,
      head: number,
      knowsDuplicate: list.some(({ identity, status }) => identity === node && status.online),
    };
  } catch {
    return undefined;
  }
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
        ? `${gap} Start the node while they are reachable: it fetches their blocks before it makes one. Do not use --recover.`
        : `${gap} The node fetches the missing blocks from them.`,
    );
  } else if (isAuthority && responses.length === 0) {
    warnings.push(
      "This node is an authority, and no peer has reported the latest block. It makes no blocks until one does. Use --recover " +
        `only if no node has a block after ${number}, and the node that was backed up is gone.`,
    );
  }
  return warnings;
}

function describe({ manifest, isAuthority }: Restored, dataDir: string, warnings: readonly string[]): string[] {
  const { node, network, head, madeMs, engine, config } = manifest;
  return [
    `node      ${node ?? "none yet"}${isAuthority ? ", which makes blocks" : ""}`,
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
