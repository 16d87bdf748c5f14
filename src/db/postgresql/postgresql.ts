/** Opens PostgreSQL: one writing node, and many reading ones, over one database. */
import type { Client } from "pg";
import { type ConnectionPools, openConnectionPools } from "../queries/connection-pools.js";
import { DatabaseError, passing, type Queries } from "../queries/database.js";
import { dialects } from "../queries/dialects.js";
import { type Access, type Connect, createServers, nameServer, type Servers } from "./postgresql-servers.js";

const readers = 8;
/** Oldest major version of PostgreSQL that this project supports. */
const oldestVersion = "14";
/**
 * Time limit in milliseconds for a connection. It is shorter than the wait for a pool connection, so that the cause is
 * reported.
 */
const connectWithinMs = 1_000;
/** Time limit in milliseconds for the first connection. It is longer, because a server may be busy or starting. */
const openWithinMs = 10_000;
/**
 * Idle time in milliseconds before TCP keep-alive probes start. While a response is awaited, a server that vanished is
 * detected after this time and ten more seconds.
 */
const keepAliveAfterMs = 5_000;
/**
 * Time limit in milliseconds for a server to close a connection that this process has ended. A server that hangs never
 * does, and the open socket would keep the process alive.
 */
const closeWithinMs = 1_000;

/**
 * Returns the servers of a database, shared by all of its parts.
 *
 * @param urls URLs of all servers, separated by commas.
 */
export async function findServers(urls: string, access: Access): Promise<Servers> {
  const { default: pg } = await import("pg");
  // The driver returns 64-bit integers as text by default. Every stored one fits into a number.
  pg.types.setTypeParser(pg.types.builtins.INT8, Number);
  const connect: Connect = async (url, withinMs) => {
    const client = new pg.Client({ ...settingsOf(url), connectionTimeoutMillis: withinMs, query_timeout: withinMs });
    client.on("error", () => undefined);
    await client.connect();
    closeInTime(client);
    return client;
  };
  return createServers(splitUrls(urls), access, connect);
}

/** Returns the servers of a database without passwords, for messages. */
export function nameServers(urls: string): string {
  return splitUrls(urls).map(nameServer).join(", ");
}

/** Splits a list of URLs. A password may contain a comma, so only a comma before a scheme separates URLs. */
function splitUrls(urls: string): string[] {
  return urls.split(/,(?=postgres(?:ql)?:\/\/)/);
}

function settingsOf(url: string) {
  return { connectionString: url, application_name: "gatehouse" };
}

/**
 * Opens a database on servers, for one part of the data of a node.
 *
 * @throws DatabaseError
 */
export async function openPostgresql(servers: Servers): Promise<ConnectionPools> {
  let tried = "";
  let withinMs = openWithinMs;
  const connections = await openConnectionPools({
    adapter: {
      dialect: dialects.postgresql,
      send: async (connection: Client, text, values) =>
        (await connection.query<object>(numberMarks(text), [...values])).rows,
      errorKindOf(code) {
        // data_corrupted, index_corrupted.
        if (code === "XX001" || code === "XX002") {
          return "damaged";
        }
        // lock_not_available, serialization_failure, deadlock_detected.
        if (/^(55P03|40001|40P01)$/.test(code ?? "")) {
          return "locked";
        }
        // Connection, read-only, resources, shutdown, or no code of the server at all; other codes mean a wrong query.
        return code === undefined || /^(08|25006|53|57|58|E[A-Z])/.test(code) ? "unavailable" : undefined;
      },
      watch: (work) => servers.watch(work),
      onDatabaseError: (error) => servers.onDatabaseError(error),
    },
    settings: {
      client: "pg",
      // Without it, knex asks each first connection for its version, and a server that hangs then is waited for forever.
      version: oldestVersion,
      connection: async () => {
        tried = await servers.find();
        const mine = servers.generation();
        return {
          ...settingsOf(tried),
          connectionTimeoutMillis: withinMs,
          keepAlive: true,
          keepAliveInitialDelayMillis: keepAliveAfterMs,
          expirationChecker: () => servers.generation() !== mine,
        };
      },
      pool: {
        idleTimeoutMillis: 60_000,
        validate: (connection: object) => servers.isAdmitted(connection),
        afterCreate: (connection: Client, done: (error: unknown, made: object) => void) => {
          closeInTime(connection);
          // The check of a server that hangs would never end.
          const timer = setTimeout(() => void connection.end(), openWithinMs);
          servers
            .admit(connection)
            .finally(() => clearTimeout(timer))
            .then(
              () => done(null, connection),
              (error: unknown) => {
                void connection.end();
                done(error, connection);
              },
            );
        },
      },
    },
    readers,
    question: "SELECT 1",
    explain: (error) => (error instanceof DatabaseError ? error : explainPostgresql(tried, error)),
  });
  withinMs = connectWithinMs;
  return connections;
}

/** Closes the socket of a connection that has been ended, if the server does not. */
function closeInTime({ connection: { stream } }: Client): void {
  stream.once("finish", () => setTimeout(() => stream.destroy(), closeWithinMs).unref());
}

/**
 * Replaces question marks with the numbered placeholders of the driver. SQL in this project uses `?` only as a
 * placeholder.
 */
function numberMarks(text: string): string {
  let mark = 0;
  return text.replace(/\?/g, () => `$${++mark}`);
}

/**
 * Codes, or messages of the driver without a code, that mean that a server is unreachable, starting, stopping or
 * recovering. A wrong password, user, database or certificate does not match.
 */
const isUnreachable =
  /^(ECONN|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOST|ENET|EPIPE|08|57P0)|timeout|terminated|no connection|not queryable/i;

/**
 * Returns the error for a database that cannot be used, with the reason and the remedy.
 *
 * @param urls URLs of its servers, separated by commas.
 */
export function explainPostgresql(urls: string, error: unknown): DatabaseError {
  const [url = urls] = splitUrls(urls);
  const { pathname } = new URL(url);
  const { code, message } = error as NodeJS.ErrnoException;
  const what = `The database ${nameServers(urls)}`;
  if (isUnreachable.test(code ?? message)) {
    const reason = code ?? "no response";
    return passing(`${what} cannot be reached (${reason}); check that PostgreSQL is running there.`, "unavailable");
  }
  switch (code) {
    case "28P01":
    case "28000":
      return new DatabaseError(`${what} rejects the user or the password in --database; correct them.`);
    case "3D000":
      return new DatabaseError(`${what} does not exist; create it with: createdb ${pathname.slice(1)}`);
    default: {
      const text = `${what} cannot be opened: ${code ?? message}.`;
      return code?.startsWith("53") === true ? passing(text, "unavailable") : new DatabaseError(text);
    }
  }
}

interface Setting {
  readonly name: string;
  readonly setting: string;
}

/** Returns the settings of the server that may lose committed data; one message for each cause. */
export async function whatMayBeLost(read: Queries, servers: number): Promise<string[]> {
  const names = ["fsync", "full_page_writes", "synchronous_commit", "synchronous_standby_names"];
  const rows = await read.rows<Setting>((sql) => sql("pg_settings").whereIn("name", names).select("name", "setting"));
  const settings = new Map(rows.map(({ name, setting }) => [name, setting]));
  const standbys = settings.get("synchronous_standby_names") ?? "";
  const waits = settings.get("synchronous_commit") ?? "on";
  const warnings = ["fsync", "full_page_writes"]
    .filter((name) => settings.get(name) === "off")
    .map((name) => `PostgreSQL runs with ${name} = off: a crash of its machine can lose or corrupt every block.`);
  if (servers > 1 && standbys === "") {
    warnings.push(
      "PostgreSQL has no synchronous standby (synchronous_standby_names is empty): if the primary is lost, the latest " +
        "blocks may be lost after they were acknowledged.",
    );
  } else if (standbys !== "" && (waits === "local" || waits === "remote_write")) {
    warnings.push(
      `PostgreSQL runs with synchronous_commit = ${waits}, which does not wait for a standby to write a block to disk: ` +
        "if the primary is lost, the latest blocks may be lost.",
    );
  }
  return warnings;
}
