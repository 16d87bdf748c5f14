/** HTTP/1.1 server with one handler and graceful shutdown. */
import { createServer, type RequestListener } from "node:http";
import { listenOn, type RpcListener } from "./listen.js";

/** Creates the server, without listening. */
export function createSmallServer(handle: RequestListener): RpcListener {
  const server = createServer(
    { headersTimeout: 10_000, requestTimeout: 30_000, keepAliveTimeout: 60_000, connectionsCheckingInterval: 2_000 },
    handle,
  );
  server.maxConnections = 1_000;
  return {
    listen: (address) => listenOn(server, address),
    async drain(graceMs) {
      const closeAll = setTimeout(() => server.closeAllConnections(), graceMs);
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeIdleConnections();
      await closed;
      clearTimeout(closeAll);
    },
  };
}
