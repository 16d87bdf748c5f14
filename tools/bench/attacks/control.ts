/**
 * Stands in for a node as the target of a flood: accepts, and discards what arrives. The node itself is then idle, so what
 * other clients lose is what flood and operating system take of the machine.
 */
import { type AddressInfo, createServer, type Server } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import type { TlsCredentials } from "../../../src/base/crypto/certificate.js";

/** Ports of the control. */
export interface ControlPorts {
  readonly plain: number;
  readonly tls: number;
}

process.once("message", (credentials: TlsCredentials) => {
  const tls = createTlsServer({ ...credentials, ALPNProtocols: ["h2", "http/1.1"] }, (socket) => {
    socket.on("error", () => undefined).resume();
  });
  const plain = createServer((socket) => {
    socket.on("error", () => undefined).resume();
  });
  const listen = async (server: Server): Promise<number> =>
    await new Promise((resolve) => {
      server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
    });
  void Promise.all([listen(plain), listen(tls)]).then((ports) => {
    process.send?.({ plain: ports[0], tls: ports[1] } satisfies ControlPorts);
  });
});
process.once("disconnect", () => process.exit());
