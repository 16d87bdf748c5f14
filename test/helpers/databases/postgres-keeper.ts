/**
 * A process with the PostgreSQL server of a test run: `node postgres-keeper.js SOCKET`. The folder of the socket has no
 * other files. The first connection to the socket starts the server. Each connection receives `{"url": …}`, or
 * `{"reason": …}` if no server can start. The server stops at the end of standard input, a pipe from the test process,
 * so also when that process is killed.
 */
import { rm } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname } from "node:path";
import { type PostgresServer, startPostgres } from "./postgres-server.js";

const path = process.argv[2]!;
let started: Promise<PostgresServer | string> | undefined;
const socket = createServer((connection) => {
  connection.on("error", () => undefined);
  void (started ??= startPostgres()).then((server) => {
    connection.end(JSON.stringify(typeof server === "string" ? { reason: server } : { url: server.url }));
  });
});
socket.listen(path);

// Ctrl-C reaches all processes of a terminal. This one must end after the users of the server.
process.on("SIGINT", () => undefined);
process.stdin.resume().once("end", () => {
  void (async () => {
    socket.close();
    const server = await started;
    if (server !== undefined && typeof server !== "string") {
      await server.remove();
    }
    await rm(dirname(path), { recursive: true, force: true });
    process.exit();
  })();
});
