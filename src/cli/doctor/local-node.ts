/** The node that runs with a configuration, if it does. */
import { hex32 } from "../../base/crypto/hash.js";
import type { NodeKey } from "../../base/crypto/node-key.js";
import type { Config } from "../../config/config.js";
import { askNode, type NodeAnswer } from "../calls/ask-node.js";
import { ExitError } from "../usage/errors.js";

/** What was found at the address where the node should be. */
export interface LocalNode {
  readonly url: string;
  /** Why nobody answers; undefined where somebody does. */
  readonly problem?: string;
  /** Public key of who answers. */
  readonly publicKey?: string;
  /** Whether that is the node that was looked for, as far as its key is known. */
  readonly isThis: boolean;
  /** Its answer to /health. */
  readonly health?: HealthBody;
}

/** What is read of /health. */
export interface HealthBody {
  readonly status: string;
  readonly ports: Readonly<Record<string, { readonly actual: number } | undefined>>;
  readonly subsystems: Readonly<
    Record<string, { readonly status: string; readonly lastError: { readonly message: string } | null }>
  >;
}

/** Asks it who it is and how it is. */
export async function findNode(
  config: Config,
  given: string | undefined,
  key: NodeKey | undefined,
): Promise<LocalNode> {
  const url = given ?? localUrl(config);
  try {
    const publicKey = JSON.parse((await askOwn(url, "/publickey")).text) as unknown;
    if (typeof publicKey !== "string" || !hex32.test(publicKey)) {
      return { url, isThis: false, problem: `What answers at ${url} is no node` };
    }
    const health = JSON.parse((await askOwn(url, "/health")).text) as HealthBody;
    return { url, publicKey, health, isThis: key === undefined || key.publicKey === publicKey };
  } catch (error) {
    if (error instanceof ExitError) {
      return { url, isThis: false, problem: error.message.replace(/\.$/, "") };
    }
    throw error;
  }
}

/** Asks a node of this machine. */
export async function askOwn(url: string, path: string): Promise<NodeAnswer> {
  return await askNode(url, path, { takesAnyCertificate: true });
}

function localUrl({ host, rpcPort, tlsCertFile }: Config): string {
  const name = host === "::" || host === "0.0.0.0" ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host;
  return `${tlsCertFile === undefined ? "http" : "https"}://${name}:${rpcPort}`;
}
