/** The binding of ports and sockets. */
import type { AddressInfo, ListenOptions, Server } from "node:net";
import type { TlsCredentials } from "../../base/crypto/certificate.js";

/** Where to listen: a port on a host, or the path of a Unix socket. */
export type ListenAddress =
  | {
      readonly host: string;
      readonly port: number;
      /** Other processes listen there, too, and the kernel gives each its part of the connections, where Node.js knows how. */
      readonly reusePort?: boolean;
    }
  | { readonly path: string };

/** Whether what began then is older than that: by up to a tenth, as chance has it. */
export function isOld(sinceMs: number, ageMs: number): boolean {
  return ageMs !== Infinity && performance.now() - sinceMs > ageMs * (1 + Math.random() / 10);
}

/** A listener that is not bound yet. */
export interface RpcListener {
  /**
   * Binds the address and gives the port it got, 0 for a Unix socket. Rejects with the system's error, such as
   * EADDRINUSE.
   */
  listen(address: ListenAddress): Promise<number>;
  /** Stops listening, finishes what is under way for up to `graceMs`, and closes every connection. */
  drain(graceMs: number): Promise<void>;
  /** Shows these from the next connection on; those that are open stay. Undefined for cleartext. */
  renewTls?(credentials: TlsCredentials): void;
}

/** {@link RpcListener.listen} of a server of `node:net`. */
export function listenOn(server: Server, address: ListenAddress): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(address as ListenOptions, () => {
      server.off("error", reject);
      resolve("path" in address ? 0 : (server.address() as AddressInfo).port);
    });
  });
}
