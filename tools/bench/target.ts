/** A node to be attacked, and what it holds. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { sha256 } from "../../src/base/crypto/hash.js";
import { createNodeKey, nodeKeyPath } from "../../src/base/crypto/node-key.js";
import { verificationKeyJson } from "../../test/helpers/chain/groth16.js";
import type { Attack, Target } from "./attacks/attack.js";
import { makeBlocks, programOf, withChain } from "./blocks.js";
import { type NodeProcess, startGatehouse } from "./server-process.js";

/** As many as one getBlocks gives. */
const blockCount = 50;
/** As many as a block of 3 MiB has room for. */
const documentsEach = 3;
const document = JSON.stringify({ large: "x".repeat(1_000_000) });

/** What nodes to be attacked are started from. */
export interface TargetFiles extends Pick<Target, "dataDir" | "genesisHash"> {
  readonly flags: readonly string[];
}

/** Makes a database with large documents in large blocks, for one node after the other. */
export async function prepareTarget(directory: string): Promise<TargetFiles> {
  const dataDir = join(directory, "hostile");
  await mkdir(dataDir);
  const key = await createNodeKey(nodeKeyPath(dataDir));
  const genesisText = JSON.stringify({
    name: "hostile",
    authorities: [key.publicKey],
    zk: { verificationKey: verificationKeyJson },
  });
  const [genesis, peers] = [join(directory, "hostile-genesis.json"), join(directory, "hostile-peers.json")];
  await writeFile(genesis, genesisText);
  // A peer that refuses: without one the node would be dormant.
  await writeFile(peers, JSON.stringify([{ url: "https://127.0.0.1:9" }]));
  await withChain(join(dataDir, "gatehouse.sqlite"), genesisText, key, (chain) =>
    makeBlocks(chain, key, {
      count: blockCount,
      transactions: documentsEach,
      operationOf: (n) => programOf(n, document),
    }),
  );
  return {
    dataDir,
    genesisHash: sha256(genesisText),
    flags: [
      // Whoever attacks is a stranger, though he comes from this machine.
      ...["--rate-limit-exempt", "192.0.2.1"],
      ...["--genesis", genesis, "--peers", peers, "--data-dir", dataDir, "--allow-private-peers"],
      ...["--mcp-enabled", "--mcp-port", "0", "--metrics-enabled", "--metrics-port", "0"],
    ],
  };
}

/** Starts a node for this attack. */
export async function startTarget(
  { flags, ...files }: TargetFiles,
  attack: Attack,
): Promise<{ readonly node: NodeProcess; readonly target: Target }> {
  const execArgv = attack.heapMiB === undefined ? [] : [`--max-old-space-size=${attack.heapMiB}`];
  const node = await startGatehouse([...flags, ...(attack.flags ?? [])], { execArgv, hidesLog: true });
  const url = `http://127.0.0.1:${node.port}`;
  const { ports } = (await (await fetch(`${url}/health`)).json()) as {
    readonly ports: Readonly<Record<"mcp" | "metrics", { readonly actual: number }>>;
  };
  const found = await fetch(`${url}/storage-program/search?q=program%201&limit=1`);
  const { programs } = (await found.json()) as { programs: readonly { readonly storageAddress: string }[] };
  const { port, omniPort } = node;
  const [mcpPort, metricsPort] = [ports.mcp.actual, ports.metrics.actual];
  return { node, target: { port, omniPort, mcpPort, metricsPort, ...files, program: programs[0]!.storageAddress } };
}
