/** PostgreSQL servers from an npm package: one for all test files of a run, and others for tests that stop them. */
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../nodes/free-port.js";
import { EmbeddedPostgres } from "./embedded-postgres.js";
import { randomBytes } from "node:crypto";
import pg from "pg";
import { connect } from "node:net";
import { text } from "node:stream/consumers";

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

/** Creates separate databases for tests. */
export type PostgresDatabases = ReturnType<typeof createPostgresDatabases>;

/** Returns functions that create databases on a server. The URL names an existing database of it. */
export function createPostgresDatabases(server: string) {
  const nameOf = (url: string): string => new URL(url).pathname.slice(1);
  const newName = (): string => `test_${randomBytes(6).toString("hex")}`;
  let shared: Promise<string> | undefined;

  const createDatabase = async (): Promise<string> => {
    const url = new URL(server);
    url.pathname = newName();
    await query(server, `CREATE DATABASE ${nameOf(url.href)}`);
    return url.href;
  };
  // An extension belongs to the database, not to a schema.
  const createShared = async (): Promise<string> => {
    const url = await createDatabase();
    await query(url, "CREATE EXTENSION pg_trgm");
    return url;
  };
  return {
    /** Creates an empty database and returns its URL, in about 0.25 s. */
    createDatabase,
    /** Creates an empty schema in a shared database, and returns its URL. For tests that use only their own tables. */
    async createSchema(): Promise<string> {
      const [url, name] = [await (shared ??= createShared()), newName()];
      await query(url, `CREATE SCHEMA ${name}`);
      return `${url}?options=${encodeURIComponent(`-c search_path=${name},public`)}`;
    },
    /** Empties an unused database. */
    async emptyDatabase(url: string): Promise<void> {
      await query(server, `DROP DATABASE ${nameOf(url)} WITH (FORCE)`);
      await query(server, `CREATE DATABASE ${nameOf(url)}`);
    },
    /** Removes a database, and ends the connections to it. */
    dropDatabase: (url: string) => query(server, `DROP DATABASE ${nameOf(url)} WITH (FORCE)`),
  };
}

async function query(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}

/** Returns the databases of the server, or a reason if it cannot start. The first call starts it for the run. */
export async function sharedPostgres(): Promise<PostgresDatabases | string> {
  const reply = await text(connect(process.env["TEST_POSTGRES"]!));
  const { url, reason } = JSON.parse(reply) as { readonly url?: string; readonly reason?: string };
  return url === undefined ? reason! : createPostgresDatabases(url);
}
