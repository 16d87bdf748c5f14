/** Clients with their own source address. On Linux, every 127.x.y.z is local. */
import { once } from "node:events";
import { type ClientHttp2Session, connect as connectHttp2, type Settings } from "node:http2";
import { connect, type Socket } from "node:net";
import type { PlainResponse } from "./plain-client.js";
import { ask } from "./plain-client.js";
import type { Teardown } from "../nodes/teardown.js";

/** Opens a connection, which the server may close at once. */
export function openFrom(t: Teardown, port: number, localAddress: string): Socket {
  const socket = connect({ port, host: "127.0.0.1", localAddress }).on("error", () => undefined);
  t.teardown(() => socket.destroy());
  return socket;
}

/** Opens an HTTP/2 session. */
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

/** Sends a plain request over a new connection. */
export async function askFrom(port: number, path: string, localAddress: string): Promise<PlainResponse> {
  return await ask(port, path, {}, { localAddress });
}

/** Resolves to the first bytes; undefined if the connection closes without data. */
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
