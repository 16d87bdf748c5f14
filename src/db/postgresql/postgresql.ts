/** Opens PostgreSQL: one node that writes, and many that read, over one database. */
import type { Client } from "pg";
import { type ConnectionPools, openConnectionPools } from "../queries/connection-pools.js";
import { DatabaseError, passing, type Queries } from "../queries/database.js";
import { dialects } from "../queries/dialects.js";
import { type Access, type Connect, createServers, nameServer, type Servers } from "./postgresql-servers.js";

const readers = 8;
/** Shorter than a query waits for a connection, so that why there is none is told. */
const connectWithinMs = 1_000;
/** The first connection is waited for longer: nobody else can answer yet, and a server may be busy or just beginning. */
const openWithinMs = 10_000;
/** A server that has gone without a word is noticed after this and ten seconds more, while an answer is waited for. */
const keepAliveAfterMs = 5_000;

/**
 * The servers of a database, for all of its parts.
 *
 * @param urls of all of them, separated by commas.
 */
export async function findServers(urls: string, access: Access): Promise<Servers> {
  const { default: pg } = await import("pg");
  // 64-bit integers come as texts by default; every one that is stored fits into a number.
  pg.types.setTypeParser(pg.types.builtins.INT8, Number);
  const connect: Connect = async (url, withinMs) => {
    const client = new pg.Client({ ...settingsOf(url), connectionTimeoutMillis: withinMs, query_timeout: withinMs });
    client.on("error", () => undefined);
    await client.connect();
    return client;
  };
  return createServers(splitUrls(urls), access, connect);
}

/** The servers of a database, without passwords. */
export function nameServers(urls: string): string {
  return splitUrls(urls).map(nameServer).join(", ");
}

/** A password may hold a comma; a URL begins with what no password does. */
function splitUrls(urls: string): string[] {
  return urls.split(/,(?=postgres(?:ql)?:\/\/)/);
}

function settingsOf(url: string) {
  return { connectionString: url, application_name: "gatehouse" };
}

/**
 * Opens a database of servers, for one part of what a node stores.
 *
 * @throws DatabaseError
 */
export async function openPostgresql(servers: Servers): Promise<ConnectionPools> {
  let tried = "";
  let withinMs = openWithinMs;
  const connections = await openConnectionPools({
    words: {
      dialect: dialects.postgresql,
      ask: async (connection: Client, text, values) =>
        (await connection.query<object>(numberMarks(text), [...values])).rows,
      troubleOf(code) {
        // data_corrupted, index_corrupted.
        if (code === "XX001" || code === "XX002") {
          return "damaged";
        }
        // Locks that were not to be had, and transactions that met in a way that only one of them could go on.
        if (/^(55P03|40001|40P01)$/.test(code ?? "")) {
          return "locked";
        }
        // Connection, read-only, resources, shutdown, or no word of the server at all; not a query that is wrong.
        return code === undefined || /^(08|25006|53|57|58|E[A-Z])/.test(code) ? "unavailable" : undefined;
      },
      watch: (work) => servers.watch(work),
      onTrouble: (error) => servers.onTrouble(error),
    },
    settings: {
      client: "pg",
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
        afterCreate: (connection: Parameters<Servers["admit"]>[0], done: (error: unknown, made: object) => void) => {
          servers.admit(connection).then(
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

/** The driver names the places of values by their numbers. No text of the house has a question mark for anything else. */
function numberMarks(text: string): string {
  let mark = 0;
  return text.replace(/\?/g, () => `$${++mark}`);
}

/**
 * A server that is away, or starts, stops or recovers, or has no room: its code, or the words of the driver where it has
 * none. A wrong password, user, name or certificate is something else.
 */
const isAway = /^(ECONN|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOST|ENET|EPIPE|08|57P0|53)|timeout|terminated|no connection/i;

/**
 * Explains why a database cannot be used.
 *
 * @param urls of its servers, separated by commas.
 */
export function explainPostgresql(urls: string, error: unknown): DatabaseError {
  const [url = urls] = splitUrls(urls);
  const { pathname } = new URL(url);
  const { code, message } = error as NodeJS.ErrnoException;
  const what = `The database ${nameServers(urls)}`;
  switch (code) {
    case "ECONNREFUSED":
    case "ENOTFOUND":
    case "ETIMEDOUT":
      return passing(`${what} cannot be reached (${code}); check that PostgreSQL runs there.`, "unavailable");
    case "28P01":
    case "28000":
      return new DatabaseError(`${what} refuses the user or the password in --database.`);
    case "3D000":
      return new DatabaseError(`${what} does not exist; make it with: createdb ${pathname.slice(1)}`);
    default: {
      const sentence = `${what} cannot be opened: ${code ?? message}.`;
      return isAway.test(code ?? message) ? passing(sentence, "unavailable") : new DatabaseError(sentence);
    }
  }
}

interface Setting {
  readonly name: string;
  readonly setting: string;
}

/** Why what is committed may be lost all the same, by the settings of the server; one sentence for each cause. */
export async function whatMayBeLost(read: Queries, servers: number): Promise<string[]> {
  const names = ["fsync", "full_page_writes", "synchronous_commit", "synchronous_standby_names"];
  const rows = await read.rows<Setting>((sql) => sql("pg_settings").whereIn("name", names).select("name", "setting"));
  const settings = new Map(rows.map(({ name, setting }) => [name, setting]));
  const standbys = settings.get("synchronous_standby_names") ?? "";
  const waits = settings.get("synchronous_commit") ?? "on";
  const warnings = ["fsync", "full_page_writes"]
    .filter((name) => settings.get(name) === "off")
    .map((name) => `PostgreSQL runs with ${name} = off: a crash of its machine can lose or damage every block.`);
  if (servers > 1 && standbys === "") {
    warnings.push(
      "PostgreSQL has no synchronous standby (synchronous_standby_names is empty): when the primary is lost, so may be " +
        "the newest blocks, after they were told of.",
    );
  } else if (standbys !== "" && (waits === "local" || waits === "remote_write")) {
    warnings.push(
      `PostgreSQL runs with synchronous_commit = ${waits}, which does not wait until a standby has a block on its disk: ` +
        "when the primary is lost, so may be the newest blocks.",
    );
  }
  return warnings;
}
