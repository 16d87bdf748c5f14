/** Express applications with typical middleware. */
import type { Express } from "express";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Teardown } from "./teardown.js";

/** Starts an application on a port of 127.0.0.1. It is closed after the test. */
export async function listenApp(t: Teardown, app: Express) {
  const server = createServer(app).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return { server, port, url: `http://127.0.0.1:${port}` };
}
