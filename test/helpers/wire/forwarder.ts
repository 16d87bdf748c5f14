/** A server of this machine that is reached by another port, from when a test says so until it says otherwise. */
import { connect, createServer, type Server, type Socket } from "node:net";
import { once } from "node:events";
import { freePort } from "../nodes/free-port.js";
import type { Teardown } from "../nodes/teardown.js";

/** A port that is closed at first. */
export interface Forwarder {
  /** The URL of the server, by this port. */
  readonly url: string;
  open(): Promise<void>;
  /** Cuts all connections, and takes no more. */
  close(): Promise<void>;
  /** Keeps all connections, and takes new ones, but passes nothing on, as a server does whose processes are stopped. */
  freeze(): void;
  /** Closes once so many more packets have come for the server, unless it is opened anew before. Resolves when it has. */
  closeAfter(packets: number): Promise<void>;
  /** Freezes once so many more packets have come for the server. */
  freezeAfter(packets: number): void;
  /** How many connections there were. */
  readonly count: () => number;
}

/** Prepares a way to the server of this URL. */
export async function createForwarder(t: Teardown, to: string): Promise<Forwarder> {
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
    url: url.href,
    async open() {
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
    close,
    freeze,
    closeAfter: (packets) => new Promise((resolve) => after(packets, () => resolve(close()))),
    freezeAfter: (packets) => after(packets, freeze),
    count: () => count,
  };
}
