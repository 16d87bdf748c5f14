/** Binding of ports and Unix sockets. */
import type { AddressInfo, ListenOptions, Server } from "node:net";
import type { TlsCredentials } from "../../base/crypto/certificate.js";
import { errorMessage } from "../../base/errors/error-message.js";
import { StartError } from "../../base/errors/start-error.js";

/** Address to listen on: a port on a host, or the path of a Unix socket. */
export type ListenAddress =
  | {
      readonly host: string;
      readonly port: number;
      /** Shares the port with other processes. The kernel distributes the connections, if Node.js supports that. */
      readonly reusePort?: boolean;
    }
  | { readonly path: string };

export interface RpcListener {
  /**
   * Binds the address. Resolves to the bound port, 0 for a Unix socket. Rejects with the system's error, such as
   * EADDRINUSE.
   */
  listen(address: ListenAddress): Promise<number>;
  /** Stops listening, waits up to `graceMs` for requests in progress, and closes every connection. */
  drain(graceMs: number): Promise<void>;
  /** Sets the credentials of new connections; open connections keep theirs. Undefined for cleartext. */
  renewTls?(credentials: TlsCredentials): void;
}

/**
 * Connections that the kernel keeps until they are accepted; net.core.somaxconn may set less. If it has to drop one, its
 * client tries again only after a second.
 */
const backlog = 4_096;

/** Implements {@link RpcListener.listen} for a server of `node:net`. */
export function listenOn(server: Server, address: ListenAddress): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ ...address, backlog } as ListenOptions, () => {
      server.off("error", reject);
      resolve("path" in address ? 0 : (server.address() as AddressInfo).port);
    });
  });
}

/** Default time limit for an idle connection between requests, in milliseconds. */
export const defaultIdleTimeoutMs = 60_000;

/** Time limits of a port, in milliseconds: those of a `node:http` server, and of HTTP/2. */
export const portTimeouts = {
  /** Time limit for the first bytes and the headers of a request. */
  headersTimeout: 10_000,
  /** Time limit for a complete request. */
  requestTimeout: 30_000,
  connectionsCheckingInterval: 2_000,
  /**
   * Shortest time limit for an HTTP/2 connection without an open stream. gRPC clients keep connections for rare calls, and
   * load balancers for 10 minutes. A client is told of the end before, so no request is lost.
   */
  http2IdleTimeout: 600_000,
};

export type PortTimeouts = typeof portTimeouts;

/** Error for a port that another process has bound. */
export class PortTakenError extends StartError {}

/** Limit on the ports tried after the requested one. */
const maxDrift = 100;

/**
 * Binds a listener of the node to the requested port, or to the next free port if drift is allowed.
 *
 * @param option name of the option that sets the port, for the error message.
 * @throws PortTakenError; StartError for another reason.
 */
export async function bindPort(
  listener: Pick<RpcListener, "listen">,
  { host, portDrift }: { readonly host: string; readonly portDrift: "allow" | "deny" },
  requested: number,
  option: string,
): Promise<{ readonly requested: number; readonly actual: number }> {
  const last = portDrift === "deny" || requested === 0 ? requested : Math.min(65_535, requested + maxDrift);
  for (let port = requested; ; port++) {
    try {
      return { requested, actual: await listener.listen({ host, port }) };
    } catch (error) {
      const isTaken = (error as NodeJS.ErrnoException).code === "EADDRINUSE";
      if (isTaken && port < last) {
        continue;
      }
      const remedy =
        portDrift === "deny" ? `; choose another ${option}, or --port-drift allow` : ", and so are the ports after it";
      throw isTaken
        ? new PortTakenError(`Port ${requested} is taken${remedy}.`)
        : new StartError(`Port ${requested} on ${host} cannot be bound: ${errorMessage(error)}.`);
    }
  }
}
