/** A TCP proxy between two nodes that can delay data, cut connections, or drop all data. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Teardown } from "../nodes/teardown.js";

/** The faults of a proxy. */
export interface ProxyState {
  /** The delay of data in either direction, in ms. The order is kept. */
  delayMs: number | (() => number);
  /** True to drop all data without closing connections. */
  isSilent: boolean;
}

/** A running proxy. */
export interface FaultyProxy extends ProxyState {
  /** The port for clients. */
  readonly port: number;
  /** Closes all open connections. */
  cut(): void;
}

/** Starts a proxy to a port that may be known later. */
export async function startProxy(t: Teardown, target: () => number): Promise<FaultyProxy> {
  const state: ProxyState = { delayMs: 0, isSilent: false };
  const { port, sockets } = await startProxies(t, target, () => state);
  return Object.assign(state, { port, cut: () => sockets.forEach((socket) => socket.destroy()) });
}

/**
 * Starts a proxy to one port, with separate faults for each client address.
 *
 * @param stateOf - Returns the faults for an address; undefined to reject its connections.
 */
export async function startProxies(
  t: Teardown,
  target: () => number,
  stateOf: (callerAddress: string) => ProxyState | undefined,
): Promise<{ readonly port: number; readonly sockets: ReadonlySet<Socket> }> {
  const sockets = new Set<Socket>();
  const server = createServer((incoming) => {
    incoming.on("error", () => undefined);
    const state = stateOf(incoming.remoteAddress ?? "");
    if (state === undefined) {
      incoming.destroy();
      return;
    }
    const outgoing = connect(target(), "127.0.0.1");
    sockets.add(incoming);
    incoming.on("close", () => sockets.delete(incoming));
    forward(incoming, outgoing, state);
    forward(outgoing, incoming, state);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => {
    server.close();
    sockets.forEach((socket) => socket.destroy());
  });
  return { port: (server.address() as AddressInfo).port, sockets };
}

/** Forwards data from one socket to the other, and closes the other one at the end. */
function forward(from: Socket, to: Socket, state: ProxyState): void {
  let previous: Promise<unknown> = Promise.resolve();
  from.on("data", (bytes: Buffer) => {
    if (state.isSilent) {
      return;
    }
    const delayMs = typeof state.delayMs === "number" ? state.delayMs : state.delayMs();
    const delay = delayMs > 0 ? sleep(delayMs) : undefined;
    // Keep the order, even if the delay gets shorter.
    previous = Promise.all([previous, delay]).then(() => to.write(bytes));
  });
  from.on("error", () => undefined);
  from.on("close", () => to.destroy());
}
