/**
 * Node inside an Express application, exported from the package as `gatehouse/express`. The node runs in the
 * application's process and listens on its own ports. The application can also mount the node's router at any path.
 */
import type { ConnectRouter } from "@connectrpc/connect";
import type { Express } from "express";
import { StartError } from "../base/errors/start-error.js";
import { readSettings, type Settings } from "../config/config.js";
import { countProcessErrors, ProcessErrors } from "../health/process-errors.js";
import { startNode } from "../node/node.js";

export { ConfigError } from "../config/declare.js";
export { StartError };
/** Key of the caller in the context values of a call: `contextValues.set(callerKey, { address, identity })`. */
export { callerKey } from "../rpc/connect/routes.js";
export type { Settings };

/** Node that runs in the application's process. */
export interface Gatehouse {
  /**
   * Express application that serves the node's public API below the path at which it is mounted.
   *
   * Responds to every request, in the node's own format: plain HTTP, JSON-RPC, Connect, gRPC-Web, documents,
   * preflights, and errors, including 404 and 405. Never calls `next()`. gRPC requires HTTP/2, which Express does not
   * support: use the node's port.
   *
   * Mount the router before handlers that read request bodies or change responses, such as `express.json()` and
   * `compression()`.
   */
  readonly router: Express;
  /**
   * Registers the node's public services with a Connect router, for your own adapters and transports:
   * `connectNodeAdapter({ routes })`, `expressConnectMiddleware({ routes })`, `createRouterTransport(routes)`. These
   * calls have no limits, and signatures are not verified: the caller is the value of {@link callerKey}.
   */
  readonly routes: (router: ConnectRouter) => void;
  /** URL of the node's public port (scheme, host and port), as reached from this machine. */
  readonly rpcUrl: string;
  /** Public key of the node: 0x and 64 lowercase hex digits. */
  readonly publicKey: string;
  /** Bound port by subsystem: `rpc`, `omni`, and `control` if enabled. */
  readonly ports: Readonly<Record<string, number>>;
  /** Messages for the operator. */
  readonly warnings: readonly string[];
  /**
   * Stops the node after the `shutdown-delay`, waiting up to 10 s for requests in progress. The router responds with 503 from then on; the
   * application's own server keeps running. Repeated calls wait for the same shutdown.
   *
   * @throws Error that names the components that failed to stop.
   */
  stop(): Promise<void>;
}

/**
 * Starts a node and resolves when it has booted.
 *
 * @param settings options by their names in a configuration file, such as `{ "data-dir": "node", "rpc-port": 0 }`;
 * docs/options.md lists them. Omitted options have their defaults. Relative paths are resolved against the working
 * directory. Flags and environment variables are not read.
 * @throws ConfigError if a setting is invalid, StartError if the node cannot start.
 */
export async function startGatehouse(settings: Settings = {}): Promise<Gatehouse> {
  const config = readSettings(settings, process.cwd());
  if (config.role === "standby") {
    throw new StartError(
      "A node inside an application cannot be a standby; run it with: gatehouse start --role standby",
    );
  }
  const processErrors = new ProcessErrors();
  const stopCounting = countProcessErrors(processErrors);
  const node = await startNode(config, { processErrors }).catch((error: unknown) => {
    stopCounting();
    throw error;
  });
  const { rpcUrl, publicKey, ports, warnings } = node;
  const application = await node.application();
  return {
    router: application.listener,
    routes: application.routes,
    ...{ rpcUrl, publicKey, ports, warnings },
    async stop() {
      stopCounting();
      await node.announceStop();
      await node.stop();
    },
  };
}
