/** Applications of Express, with what somebody else would have in them. */
import type { Express } from "express";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Teardown } from "./teardown.js";

/** An application that listens. */
export interface RunningApp {
  readonly server: Server;
  readonly port: number;
  /** Without a slash at its end. */
  readonly url: string;
}

/** Lets an application listen on a port of 127.0.0.1; it is closed after the test. */
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
