/** A wire between two nodes that can be slow, cut connections, or carry nothing. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { Teardown } from "./teardown.js";

/** A wire. */
export interface FaultyWire {
  /** Where it begins. */
  readonly port: number;
  /** Milliseconds that every piece takes, in either direction. */
  delayMs: number;
  /** It carries nothing: what is connected hears nothing more, and nobody is told. */
  isSilent: boolean;
  /** Cuts the connections on it. */
  cut(): void;
}

/** Lays a wire to a port that may be known later. */
export async function layWire(t: Teardown, target: () => number): Promise<FaultyWire> {
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(target(), "127.0.0.1");
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on("data", (bytes: Buffer) => {
        if (!wire.isSilent) {
          setTimeout(() => to.write(bytes), wire.delayMs);
        }
      });
      from.on("error", () => undefined);
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const wire: FaultyWire = {
    port: (server.address() as AddressInfo).port,
    delayMs: 0,
    isSilent: false,
    cut: () => sockets.forEach((socket) => socket.destroy()),
  };
  t.teardown(() => {
    server.close();
    wire.cut();
  });
  return wire;
}
