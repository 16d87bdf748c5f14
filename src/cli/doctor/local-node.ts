/** Detection of the node that runs with a configuration. */
import { hex32 } from "../../base/crypto/hash.js";
import type { NodeKey } from "../../base/crypto/node-key.js";
import type { Config } from "../../config/config.js";
import { requestHealth, requestNode, type NodeRequest } from "../calls/request-node.js";
import { ExitError } from "../usage/errors.js";

/** Response at the address of the configured node. */
export interface LocalNode {
  readonly url: string;
  /** Reason for a missing response; undefined if a node responds. */
  readonly problem?: string;
  /** Public key of the node that responds. */
  readonly publicKey?: string;
  /** True if the responding node is the configured one, or the key of the configured one is unknown. */
  readonly isThis: boolean;
  /** Response to /health. */
  readonly health?: HealthBody;
}

/** Fields that are read from /health. */
export interface HealthBody {
  readonly status: string;
  readonly ports: Readonly<Record<string, { readonly actual: number } | undefined>>;
  readonly subsystems: Readonly<
    Record<string, { readonly status: string; readonly lastError: { readonly message: string } | null }>
  >;
}

/**
 * Queries the public key and the health of the node.
 *
 * @param configuredUrl URL of the node. Default: derived from the configuration.
 */
export async function findNode(
  config: Config,
  configuredUrl: string | undefined,
  key: NodeKey | undefined,
): Promise<LocalNode> {
  const url = configuredUrl ?? localUrl(config);
  try {
    const publicKey = JSON.parse((await requestNode(url, "/publickey", localRequest)).text) as unknown;
    if (typeof publicKey !== "string" || !hex32.test(publicKey)) {
      return { url, isThis: false, problem: `The server at ${url} is not a node` };
    }
    const health = JSON.parse((await requestHealth(url, localRequest)).text) as HealthBody;
    return { url, publicKey, health, isThis: key === undefined || key.publicKey === publicKey };
  } catch (error) {
    if (error instanceof ExitError) {
      return { url, isThis: false, problem: error.message.replace(/\.$/, "") };
    }
    throw error;
  }
}

/** Options of a request to a node on this machine: any certificate is accepted. */
export const localRequest: NodeRequest = { acceptsAnyCertificate: true };

function localUrl({ host, rpcPort, tlsCertFile }: Config): string {
  const name = host === "::" || host === "0.0.0.0" ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host;
  return `${tlsCertFile === undefined ? "http" : "https"}://${name}:${rpcPort}`;
}
