/** Node that is attacked, and its content. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { sha256 } from "../../src/base/crypto/hash.js";
import { createNodeKey, nodeKeyPath } from "../../src/base/crypto/node-key.js";
import { verificationKeyJson } from "../../test/helpers/chain/groth16.js";
import type { Attack, Target } from "./attacks/attack.js";
import { makeBlocks, programOf, withChain } from "./blocks.js";
import { type NodeProcess, startGatehouse } from "./server-process.js";

/** Number of blocks: as many as one getBlocks request returns. */
const blockCount = 50;
/** Number of documents in a block of 3 MiB. */
const documentsEach = 3;
const document = JSON.stringify({ large: "x".repeat(1_000_000) });

/** Prepared data from which the nodes are started. */
export interface TargetFiles extends Pick<Target, "dataDir" | "genesisHash"> {
  readonly flags: readonly string[];
}

/** Creates a database with large documents in large blocks. Each attacked node gets a copy. */
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
  // Without a peer the node would be dormant, so name one that rejects connections.
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
      // Attackers are treated as remote clients, although they connect from this machine.
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
