/** Opens a PostgreSQL database, which one node writes to and any number of nodes read. */
import type { Client } from "pg";
import { loadOptional } from "../../base/async/optional-package.js";
import type { DatabaseErrorKind } from "../../base/errors/database-error-kind.js";
import { type ConnectionPools, openConnectionPools, type PoolDeps } from "../queries/connection-pools.js";
import { DatabaseError, type PoolUse, temporaryError, type Queries } from "../queries/database.js";
import { dialects } from "../queries/dialects.js";
import { LivenessMonitor } from "../queries/liveness.js";
import { type Access, type Connect, createServers, describeServer, type Servers } from "./postgresql-servers.js";

const readers = 8;
const oldestVersion = "14";
/**
 * Time limit in milliseconds for a connection. It is shorter than the wait for a pool connection, so that the cause is
 * reported.
 */
const connectTimeoutMs = 1_000;
/** Time limit in milliseconds for the first connection. It is longer, because a server may be busy or starting. */
const openTimeoutMs = 10_000;
/**
 * Idle time in milliseconds before TCP keep-alive probes start. While a response is awaited, a server that vanished is
 * detected after this time and ten more seconds.
 */
const keepAliveAfterMs = 5_000;
/**
 * Time limit in milliseconds for a server to close a connection that this process has ended. A server that hangs never
 * does, and the open socket would keep the process alive.
 */
const closeTimeoutMs = 1_000;

/** Returns the servers of a database, shared by all of its parts. Commas separate their URLs. */
export async function loadServers(urls: string, access: Access): Promise<Servers> {
  const { default: pg } = await loadOptional("PostgreSQL", "pg", () => import("pg"));
  // The driver returns 64-bit integers as text by default. Every stored one fits into a number.
  pg.types.setTypeParser(pg.types.builtins.INT8, Number);
  const connect: Connect = async (url, timeoutMs) => {
    const client = new pg.Client({ ...settingsOf(url), connectionTimeoutMillis: timeoutMs, query_timeout: timeoutMs });
    client.on("error", () => undefined);
    await client.connect();
    closeSocketOnEnd(client);
    return client;
  };
  return createServers(splitUrls(urls), access, connect);
}

/** Returns the servers of a database without passwords, for messages. */
export function describeServers(urls: string): string {
  return splitUrls(urls).map(describeServer).join(", ");
}

/** Splits a list of URLs. A password may contain a comma, so only a comma before a scheme separates URLs. */
function splitUrls(urls: string): string[] {
  return urls.split(/,(?=postgres(?:ql)?:\/\/)/);
}

function settingsOf(url: string) {
  return { connectionString: url, application_name: "gatehouse" };
}

/** Opens a database on servers, for one part of the data of a node. */
export async function openPostgresql(servers: Servers): Promise<ConnectionPools> {
  let url = "";
  let timeoutMs = openTimeoutMs;
  const poolOf = (use: PoolUse): PoolDeps => {
    const pool = servers.pool(use);
    return {
      adapter: {
        dialect: dialects.postgresql,
        send: async (connection: Client, text, values) =>
          (await connection.query<object>(numberPlaceholders(text), [...values])).rows,
        errorKindOf,
        monitor: (work) => pool.monitor(work),
        // The server itself tells a failed read (58030) from corrupt data (XX001).
        runRead: (read) => read(),
        runWrite: (write) => write(),
        examine: (error) => Promise.resolve(error),
        onDatabaseError: (error, hasConnection) => pool.onDatabaseError(error, hasConnection),
      },
      settings: {
        client: "pg",
        // Without it, knex queries the version over each first connection, and waits forever if the server hangs.
        version: oldestVersion,
        connection: async () => {
          url = await pool.selectUrl();
          const generation = pool.generation();
          return {
            ...settingsOf(url),
            connectionTimeoutMillis: timeoutMs,
            keepAlive: true,
            keepAliveInitialDelayMillis: keepAliveAfterMs,
            expirationChecker: () => pool.generation() !== generation,
          };
        },
        pool: {
          idleTimeoutMillis: 60_000,
          validate: (connection: object) => pool.isAdmitted(connection),
          afterCreate: (connection: Client, done: (error: unknown, connection: object) => void) => {
            closeSocketOnEnd(connection);
            // Without this, the check of a connection to a server that hangs would never end.
            const timer = setTimeout(() => void connection.end(), openTimeoutMs);
            pool
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
    };
  };
  const connections = await openConnectionPools({
    poolOf,
    liveness: new LivenessMonitor(),
    readers,
    inspect: () => Promise.resolve([]),
    onDiskChange: () => undefined,
    probeQuery: "SELECT 1",
    explain: (error) => (error instanceof DatabaseError ? error : explainPostgresql(url, error)),
  });
  timeoutMs = connectTimeoutMs;
  return connections;
}

/** Classifies a code of the server or of the driver. */
function errorKindOf(code: string | undefined): DatabaseErrorKind | undefined {
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
}

/** Closes the socket of an ended connection if the server does not close it within {@link closeTimeoutMs}. */
function closeSocketOnEnd({ connection: { stream } }: Client): void {
  stream.once("finish", () => setTimeout(() => stream.destroy(), closeTimeoutMs).unref());
}

/**
 * Replaces question marks with the numbered placeholders of the driver. SQL in this project uses `?` only as a
 * placeholder.
 */
function numberPlaceholders(text: string): string {
  let number = 0;
  return text.replace(/\?/g, () => `$${++number}`);
}

/**
 * Matches codes, and messages of errors without a code, for a server that is unreachable, starting, stopping or
 * recovering. A wrong password, user, database or certificate does not match.
 */
const unreachablePattern =
  /^(ECONN|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOST|ENET|EPIPE|08|57P0)|timeout|terminated|no connection|not queryable/i;

/** Returns the error for a database that cannot be used, with the reason and the remedy. */
export function explainPostgresql(urls: string, error: unknown): DatabaseError {
  const [url = urls] = splitUrls(urls);
  const { pathname } = new URL(url);
  const { code, message } = error as NodeJS.ErrnoException;
  const subject = `The database ${describeServers(urls)}`;
  if (unreachablePattern.test(code ?? message)) {
    const reason = code ?? "no response";
    return temporaryError(
      `${subject} cannot be reached (${reason}); check that PostgreSQL is running there.`,
      "unavailable",
    );
  }
  switch (code) {
    case "28P01":
    case "28000":
      return new DatabaseError(`${subject} rejects the user or the password in --database; correct them.`);
    case "3D000":
      return new DatabaseError(`${subject} does not exist; create it with: createdb ${pathname.slice(1)}`);
    default: {
      const text = `${subject} cannot be opened: ${code ?? message}.`;
      return code?.startsWith("53") === true ? temporaryError(text, "unavailable") : new DatabaseError(text);
    }
  }
}

interface Setting {
  readonly name: string;
  readonly setting: string;
}

/** Returns a message for the operator for each setting of the server that may lose committed data. */
export async function durabilityRisks(read: Queries, servers: number): Promise<string[]> {
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
