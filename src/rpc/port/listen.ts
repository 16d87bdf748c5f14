/** Binding of ports and Unix sockets. */
import type { AddressInfo, ListenOptions, Server } from "node:net";
import type { TlsCredentials } from "../../base/crypto/certificate.js";

/** Address to listen on: a port on a host, or the path of a Unix socket. */
export type ListenAddress =
  | {
      readonly host: string;
      readonly port: number;
      /** Shares the port with other processes. The kernel distributes the connections, if Node.js supports that. */
      readonly reusePort?: boolean;
    }
  | { readonly path: string };

/**
 * Returns true if the age limit has passed. Adds up to 10 % at random, so that connections opened together do not all
 * end together.
 */
export function isOld(sinceMs: number, ageMs: number): boolean {
  return ageMs !== Infinity && performance.now() - sinceMs > ageMs * (1 + Math.random() / 10);
}

/** Listener that is not bound yet. */
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

/** Implements {@link RpcListener.listen} for a server of `node:net`. */
export function listenOn(server: Server, address: ListenAddress): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(address as ListenOptions, () => {
      server.off("error", reject);
      resolve("path" in address ? 0 : (server.address() as AddressInfo).port);
    });
  });
}
