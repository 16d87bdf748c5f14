/** The binding of ports. */
import type { AddressInfo, Server } from "node:net";

/** A listener that is not bound yet. */
export interface RpcListener {
  /** Binds the port and gives the one it got. Rejects with the system's error, such as EADDRINUSE. */
  listen(host: string, port: number): Promise<number>;
  /** Stops listening, finishes what is under way for up to `graceMs`, and closes every connection. */
  drain(graceMs: number): Promise<void>;
}

/** {@link RpcListener.listen} of a server of `node:net`. */
export function listenOn(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}
