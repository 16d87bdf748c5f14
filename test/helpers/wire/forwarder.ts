/** A TCP forwarder to a local server, which a test can open, close and freeze. */
import { connect, createServer, type Server, type Socket } from "node:net";
import { once } from "node:events";
import { freePort } from "../nodes/free-port.js";
import type { Teardown } from "../nodes/teardown.js";

/** A forwarder whose port is closed at first. */
export type Forwarder = Awaited<ReturnType<typeof createForwarder>>;

/** Creates a forwarder to the server of this URL. */
export async function createForwarder(t: Teardown, to: string) {
  const port = await freePort();
  const target = new URL(to);
  const url = new URL(to);
  url.hostname = "127.0.0.1";
  url.port = String(port);
  const sockets = new Set<Socket>();
  let server: Server | undefined;
  let count = 0;
  let isFrozen = false;
  let onSent = (): void => undefined;
  const freeze = (): void => {
    isFrozen = true;
    sockets.forEach((socket) => socket.unpipe().pause());
  };
  const close = async (): Promise<void> => {
    const closed = server && once(server, "close");
    server?.close();
    server = undefined;
    sockets.forEach((socket) => socket.destroy());
    await closed;
  };
  const after = (packets: number, then: () => void): void => {
    let left = packets;
    onSent = () => {
      if (--left === 0) {
        then();
      }
    };
  };
  t.teardown(close);
  return {
    /** The URL of the server with the port of the forwarder. */
    url: url.href,
    async open(): Promise<void> {
      onSent = () => undefined;
      server = createServer((near) => {
        count++;
        if (isFrozen) {
          sockets.add(near.on("error", () => undefined));
          return;
        }
        const far = connect(Number(target.port), target.hostname);
        for (const [one, other] of [
          [near, far],
          [far, near],
        ] as const) {
          sockets.add(one);
          one.on("error", () => undefined);
          one.on("close", () => {
            sockets.delete(one);
            other.destroy();
          });
          one.pipe(other);
        }
        near.on("data", () => onSent());
      });
      server.listen(port, "127.0.0.1");
      await once(server, "listening");
    },
    /** Closes all connections, and accepts no more. */
    close,
    /** Keeps connections open and accepts new ones, but forwards no data, like a stopped server process. */
    freeze,
    /** Closes after this many more packets to the server, unless it is opened again before. Resolves once closed. */
    closeAfter: (packets: number) => new Promise<void>((resolve) => after(packets, () => resolve(close()))),
    freezeAfter: (packets: number): void => after(packets, freeze),
    /** The number of connections so far. */
    count: () => count,
  };
}
