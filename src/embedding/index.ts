/**
 * A node inside an Express application, exported from the package as `gatehouse/express`: it runs in the application's
 * process, on ports of its own, and as an application that the other one mounts where it likes.
 */
import type { ConnectRouter } from "@connectrpc/connect";
import type { Express } from "express";
import { StartError } from "../base/errors/start-error.js";
import { readSettings, type Settings } from "../config/config.js";
import { countProcessErrors, createProcessErrors } from "../health/process-errors.js";
import { startNode } from "../node/node.js";

export { ConfigError } from "../config/config-error.js";
export { StartError };
/** The caller in the context values of a call: `contextValues.set(callerKey, { address, identity })`. */
export { callerKey } from "../rpc/connect/routes.js";
export type { Settings };

/** A node that runs in the application's process. */
export interface Gatehouse {
  /**
   * Answers whatever gets to it, below the path at which it is mounted, as the node's public port does: plain HTTP,
   * JSON-RPC, Connect, gRPC-Web, documents, preflights, and failures, 404 and 405 among them, in the node's own form. It
   * hands nothing on. gRPC needs HTTP/2, which Express has not: it is on the port.
   *
   * Mount it before what reads request bodies or changes answers, such as `express.json()` and `compression()`.
   */
  readonly router: Express;
  /**
   * Registers the node's public services with a router of Connect, for adapters and transports of your own:
   * `connectNodeAdapter({ routes })`, `expressConnectMiddleware({ routes })`, `createRouterTransport(routes)`. Nobody is
   * counted or limited there, and no signature is read: who calls is what {@link callerKey} says.
   */
  readonly routes: (router: ConnectRouter) => void;
  /** Scheme, host and port of the node's public port, as reached from this machine. */
  readonly rpcUrl: string;
  /** 0x and 64 lower-case hex digits. */
  readonly publicKey: string;
  /** Bound port by subsystem: `rpc`, `omni`, and `control` where it has one. */
  readonly ports: Readonly<Record<string, number>>;
  /** Sentences that the operator should read. */
  readonly warnings: readonly string[];
  /**
   * Finishes what is under way, for up to ten seconds, and ends the node; the router turns requests away from then on
   * (503). The application's own server goes on. All callers wait for the same end.
   *
   * @throws Error that names the parts that could not be ended.
   */
  stop(): Promise<void>;
}

/**
 * Starts a node and resolves when it has booted.
 *
 * @param settings options by the names that they have in a configuration file, such as `{ "data-dir": "node",
 * "rpc-port": 0 }`; docs/options.md lists them. What is left out has its default. Relative paths start from the working
 * directory. Neither flags nor the environment are read.
 * @throws ConfigError when a setting is wrong, StartError when the node cannot start.
 */
export async function startGatehouse(settings: Settings = {}): Promise<Gatehouse> {
  const config = readSettings(settings, process.cwd());
  if (config.role === "standby") {
    throw new StartError("A node inside an application does not stand by; run it with: gatehouse start --role standby");
  }
  const processErrors = createProcessErrors();
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
      await node.stop();
    },
  };
}
