/** Node that is attacked, and its content. */
import { join } from "node:path";
import { sha256 } from "../../../src/base/crypto/hash.js";
import { verificationKeyJson } from "../../../test/helpers/chain/groth16.js";
import { askJson } from "../../../test/helpers/wire/plain-client.js";
import type { Attack, Target } from "./attack.js";
import { authority, makeBlocks, makeHome, programOf, withChain } from "../blocks.js";
import { type NodeProcess, startGatehouse } from "../servers/server-process.js";

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
  const zk = { verificationKey: verificationKeyJson };
  const genesis = JSON.stringify({ name: "hostile", authorities: [authority.publicKey], zk });
  const { dir, flags, url } = await makeHome(join(directory, "hostile"), { genesis });
  const blocks = {
    count: blockCount,
    transactions: documentsEach,
    operationOf: (n: number) => programOf(n, document),
  };
  await withChain(url, (chain) => makeBlocks(chain, blocks), { text: genesis });
  return {
    dataDir: dir,
    genesisHash: sha256(genesis),
    flags: [
      // Attackers are treated as remote clients, although they connect from this machine.
      ...[...flags, "--rate-limit-exempt", "192.0.2.1"],
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
  const { port, omniPort } = node;
  const { ports } = await askJson<{ ports: Record<"mcp" | "metrics", { actual: number }> }>(port, "/health");
  const { programs } = await askJson<{ programs: { storageAddress: string }[] }>(
    port,
    "/storage-program/search?q=program%201&limit=1",
  );
  const [mcpPort, metricsPort] = [ports.mcp.actual, ports.metrics.actual];
  return { node, target: { port, omniPort, mcpPort, metricsPort, ...files, program: programs[0]!.storageAddress } };
}
