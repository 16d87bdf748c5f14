/** A wire between two nodes that can be slow, cut connections, or carry nothing. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Teardown } from "../nodes/teardown.js";

/** What a wire does to what is sent over it. */
export interface ProxyState {
  /** Milliseconds that a piece takes, in either direction; they arrive in their order. */
  delayMs: number | (() => number);
  /** It carries nothing: what is connected hears nothing more, and nobody is told. */
  isSilent: boolean;
}

/** A wire. */
export interface FaultyProxy extends ProxyState {
  /** Where it begins. */
  readonly port: number;
  /** Cuts the connections on it. */
  cut(): void;
}

/** Lays a wire to a port that may be known later. */
export async function startProxy(t: Teardown, target: () => number): Promise<FaultyProxy> {
  const state: ProxyState = { delayMs: 0, isSilent: false };
  const { port, sockets } = await startProxies(t, target, () => state);
  return Object.assign(state, { port, cut: () => sockets.forEach((socket) => socket.destroy()) });
}

/**
 * Lays wires from everybody to one port, one for each who calls.
 *
 * @param stateOf - The wire from this address; undefined where nobody is let through.
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

/** Carries what comes from one end to the other, and ends it when the first has ended. */
function forward(from: Socket, to: Socket, state: ProxyState): void {
  let previous: Promise<unknown> = Promise.resolve();
  from.on("data", (bytes: Buffer) => {
    if (state.isSilent) {
      return;
    }
    const delayMs = typeof state.delayMs === "number" ? state.delayMs : state.delayMs();
    const delay = delayMs > 0 ? sleep(delayMs) : undefined;
    // Nothing overtakes, also when the wire gets faster.
    previous = Promise.all([previous, delay]).then(() => to.write(bytes));
  });
  from.on("error", () => undefined);
  from.on("close", () => to.destroy());
}
