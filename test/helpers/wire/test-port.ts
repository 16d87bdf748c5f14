/** Port without protocols: the test handles each exchange. */
import { readFile } from "node:fs/promises";
import type { Socket } from "node:net";
import { connect } from "node:tls";
import { createUnrestrictedGate } from "../../../src/edge/unrestricted-gate.js";
import { createRequestIds } from "../../../src/rpc/exchange/exchange.js";
import { createPort, type PortDeps } from "../../../src/rpc/port/port.js";
import { makeCertificate } from "../nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../nodes/teardown.js";
import { openFrom } from "./plain-client.js";

/** Permit without limits. */
export const freePermit = { occupySlot: () => undefined, reserveRequestBytes: () => undefined };

/** Starts a port on 127.0.0.1. */
export async function startTestPort(
  t: Teardown,
  isTls: boolean,
  handle: PortDeps["handle"],
  more: Pick<PortDeps, "timeouts" | "idleTimeoutMs"> = {},
) {
  const files = isTls ? await makeCertificate(await temporaryDirectory(t)) : undefined;
  const tls = files && { cert: await readFile(files.cert, "utf8"), key: await readFile(files.key, "utf8") };
  const port = createPort({
    ...{ handle, gate: createUnrestrictedGate(), nextRequestId: createRequestIds(), tls },
    ...more,
  });
  t.teardown(() => port.drain(0));
  const number = await port.listen({ host: "127.0.0.1", port: 0 });
  const ca = tls?.cert;
  return {
    url: `${isTls ? "https" : "http"}://127.0.0.1:${number}`,
    ca,
    /** Opens a connection, over TLS after its handshake without ALPN. */
    open: (): Socket => {
      if (ca === undefined) {
        return openFrom(t, number, "127.0.0.1");
      }
      const socket = connect({ host: "127.0.0.1", port: number, ca, checkServerIdentity: () => undefined });
      t.teardown(() => socket.destroy());
      return socket;
    },
  };
}
