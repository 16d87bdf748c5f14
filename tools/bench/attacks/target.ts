/** Node that is attacked, and its content. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createCertificate } from "../../../src/base/crypto/certificate.js";
import { sha256 } from "../../../src/base/crypto/hash.js";
import { newKey } from "../../../test/helpers/chain/keys.js";
import { verificationKeyJson } from "../../../test/helpers/chain/groth16.js";
import { programAddress } from "../../../src/storage/changes/write.js";
import type { Attack, Target } from "./attack.js";
import { createClient } from "./transport.js";
import type { Variant } from "./variant.js";
import { authority, makeBlocks, makeHome, programOf, withChain } from "../blocks.js";
import { type NodeProcess, startGatehouse } from "../servers/server-process.js";

/** Number of blocks: as many as one getBlocks request returns. */
const blockCount = 50;
/** Number of documents in a block of 3 MiB. */
const documentsEach = 3;
const document = JSON.stringify({ large: "x".repeat(1_000_000) });
/** Nonce of the one small program, which is in the first block. */
const smallNonce = 1;

/** Prepared data from which the nodes are started. */
export interface TargetFiles extends Pick<Target, "dataDir" | "genesisHash"> {
  readonly flags: readonly string[];
  /** Options of the node that enable TLS. */
  readonly tlsFlags: readonly string[];
}

/** Started node, with what attackers and judge know of it. */
export interface StartedTarget {
  readonly node: NodeProcess;
  readonly target: Target;
  readonly smallProgram: string;
}

/** Creates a database with large documents in large blocks. Each attacked node gets a copy. */
export async function prepareTarget(directory: string): Promise<TargetFiles> {
  const zk = { verificationKey: verificationKeyJson };
  const genesis = JSON.stringify({ name: "hostile", authorities: [authority.publicKey], zk });
  const { dir, flags, url } = await makeHome(join(directory, "hostile"), { genesis });
  const blocks = {
    count: blockCount,
    transactions: documentsEach,
    operationOf: (n: number) => programOf(n, n === smallNonce ? "{}" : document),
  };
  await withChain(url, (chain) => makeBlocks(chain, blocks), { text: genesis });
  const credentials = createCertificate(newKey().privateKey);
  const [cert, key] = [join(directory, "cert.pem"), join(directory, "key.pem")];
  await writeFile(cert, credentials.cert);
  await writeFile(key, credentials.key, { mode: 0o600 });
  return {
    dataDir: dir,
    genesisHash: sha256(genesis),
    tlsFlags: ["--tls-cert", cert, "--tls-key", key],
    flags: [
      // Attackers are treated as remote clients, although they connect from this machine.
      ...[...flags, "--rate-limit-exempt", "192.0.2.1"],
      ...["--mcp-enabled", "--mcp-port", "0", "--metrics-enabled", "--metrics-port", "0"],
    ],
  };
}

/** Starts a node of a variant for this attack. */
export async function startTarget(files: TargetFiles, attack: Attack, variant: Variant): Promise<StartedTarget> {
  const { flags, tlsFlags, dataDir, genesisHash } = files;
  const transport = { ...variant.transport, ...attack.transport };
  const isHeapOwn = attack.heapMiB !== undefined && !variant.hasSmallHeap;
  const node = await startGatehouse(
    [...flags, ...(transport.tls ? tlsFlags : []), ...variant.flags, ...(attack.flags ?? [])],
    { execArgv: isHeapOwn ? [`--max-old-space-size=${attack.heapMiB}`] : [], env: variant.env, hidesLog: true },
  );
  const { port, omniPort } = node;
  const send = createClient(port, { http: 1, tls: transport.tls });
  const readJson = async <T>(path: string): Promise<T> => {
    const { body } = await send({ path, localAddress: "127.0.0.1", timeoutMs: 10_000 });
    return JSON.parse(body.toString("utf8")) as T;
  };
  const { ports } = await readJson<{ ports: Record<"mcp" | "metrics", { actual: number }> }>("/health");
  const [mcpPort, metricsPort] = [ports.mcp.actual, ports.metrics.actual];
  const addressOf = (nonce: number): string =>
    programAddress(authority.publicKey, `program ${nonce}`, BigInt(nonce), "");
  return {
    node,
    smallProgram: addressOf(smallNonce),
    target: {
      ...{ port, omniPort, mcpPort, metricsPort, dataDir, genesisHash, transport },
      program: addressOf(smallNonce + 1),
    },
  };
}
