/** Express applications with typical middleware. */
import type { Express } from "express";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Teardown } from "./teardown.js";

/** A listening application. */
export interface RunningApp {
  readonly server: Server;
  readonly port: number;
  /** The URL, without a slash at its end. */
  readonly url: string;
}

/** Starts an application on a port of 127.0.0.1. It is closed after the test. */
export async function listenApp(t: Teardown, app: Express): Promise<RunningApp> {
  const server = createServer(app).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return { server, port, url: `http://127.0.0.1:${port}` };
}
