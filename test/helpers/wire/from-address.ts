/** Clients that come from an address of their own: on Linux, every 127.x.y.z is one of this machine. */
import { once } from "node:events";
import { type ClientHttp2Session, connect as connectHttp2, type Settings } from "node:http2";
import { connect, type Socket } from "node:net";
import type { PlainResponse } from "./plain-client.js";
import { ask } from "./plain-client.js";
import type { Teardown } from "../nodes/teardown.js";

/** Connects; the socket may be closed at once by the other end. */
export function openFrom(t: Teardown, port: number, localAddress: string): Socket {
  const socket = connect({ port, host: "127.0.0.1", localAddress }).on("error", () => undefined);
  t.teardown(() => socket.destroy());
  return socket;
}

/** A session of HTTP/2. */
export function sessionFrom(
  t: Teardown,
  port: number,
  localAddress: string,
  settings: Settings = {},
): ClientHttp2Session {
  const createConnection = (): Socket => openFrom(t, port, localAddress);
  const session = connectHttp2("http://127.0.0.1", { createConnection, settings }).on("error", () => undefined);
  t.teardown(() => session.destroy());
  return session;
}

/** A plain request over a connection of its own. */
export async function askFrom(port: number, path: string, localAddress: string): Promise<PlainResponse> {
  return await ask(port, path, {}, localAddress);
}

/** The first bytes that come; undefined when the connection is closed without any. */
export async function firstBytes(socket: Socket): Promise<string | undefined> {
  if (socket.closed) {
    return undefined;
  }
  const bytes = once(socket, "data").then(
    ([chunk]) => String(chunk),
    () => undefined,
  );
  const closed = new Promise<undefined>((resolve) => socket.once("close", () => resolve(undefined)));
  return await Promise.race([bytes, closed]);
}
