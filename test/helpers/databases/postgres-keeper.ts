/**
 * A process with the PostgreSQL server of a run: `node postgres-keeper.js SOCKET`, where the socket is alone in its folder. The first connection to the socket starts
 * the server; each is sent `{"url": …}`, or `{"reason": …}` where no server can start. The server ends with standard input,
 * which is a pipe from the process that runs the tests: so also when that one is killed.
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

// Ctrl-C reaches all processes of a terminal: this one ends after those that use the server.
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
