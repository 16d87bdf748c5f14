/**
 * Selects one of several PostgreSQL servers. The servers replicate one database: the primary accepts writes, the others
 * are standbys, and roles change at runtime. Connections go to the server that was selected last. If it is lost or is
 * no longer the primary, all connections are dropped and the servers are queried again.
 */
import { errorMessage } from "../../base/errors/error-message.js";
import { DatabaseError, temporaryError } from "../queries/database.js";

/** Access to the database. Writes need the primary; reads prefer a standby. */
export type Access = "write" | "read";

/** Connection to a server, as the driver provides it. */
export interface ServerConnection {
  query(text: string): Promise<{ readonly rows: readonly object[] }>;
  on(event: "error", listener: (error: unknown) => void): unknown;
  once(event: "end", listener: () => void): unknown;
  /** Closes the connection and rejects its pending queries. */
  end(): Promise<void>;
}

interface Reachable {
  readonly url: string;
  readonly isStandby: boolean;
  /** Number that increases with each promotion of a standby; 0 for a standby. */
  readonly timeline: number;
}

interface Unreachable {
  readonly url: string;
  readonly error: unknown;
}

/** Opens a connection to a server. The caller closes it. */
export type Connect = (url: string, timeoutMs: number) => Promise<ServerConnection>;

/**
 * Time limit in milliseconds for each of several servers to report its role. A query waits at most 2 s for a
 * connection, including this.
 */
const probeTimeoutMs = 1_000;
/**
 * Time limit in milliseconds for a probe while a response is awaited. It is longer, because a busy server may accept a
 * connection late and still serve others.
 */
const checkTimeoutMs = 5_000;
/** Interval in milliseconds between probes of the server while a response is awaited. */
const checkIntervalMs = 5_000;

const roleQuery = `SELECT standby AS "isStandby",
  CASE WHEN standby THEN 0 ELSE CAST(CAST('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8) AS bit(32)) AS integer)
  END AS timeline
  FROM pg_is_in_recovery() AS standby`;

/**
 * Returns true if the error means that the server is lost: the connection failed or was closed, the server stops or
 * starts, or it is a standby now. A timeout of the driver has no code. A KnexTimeoutError is a wait for a connection of
 * the pool, not for the server.
 */
function isLoss(error: unknown): boolean {
  const { code, name } = error as NodeJS.ErrnoException;
  return code === undefined ? name !== "KnexTimeoutError" : /^(08|25006|57P0|E[A-Z])/.test(code);
}

/** Returns the host and database of a URL, without the password, for messages. */
export function describeServer(url: string): string {
  const { host, pathname } = new URL(url);
  return `${host}${pathname}`;
}

export type Servers = ReturnType<typeof createServers>;

export function createServers(urls: readonly string[], access: Access, connect: Connect) {
  const admitted = new WeakMap<object, number>();
  let generation = 0;
  let selecting: Promise<string> | undefined;
  let checking: Promise<void> | undefined;
  /** URL of the server that connections go to. */
  let [current] = urls;
  const connections = new Set<ServerConnection>();
  const selectAmong = createServerSelection(access);

  async function selectAgain(): Promise<string> {
    current = selectAmong(await Promise.all(urls.map((url) => probe(url, connect))));
    return current;
  }

  /**
   * Probes the server and drops its connections if it is lost. A host that is cut off sends nothing, and TCP would
   * retransmit for minutes.
   */
  async function check(): Promise<void> {
    const waiting = [...connections];
    const server = await probe(current!, connect, checkTimeoutMs);
    const isLost = "error" in server ? isLoss(server.error) : access === "write" && server.isStandby;
    if (isLost) {
      generation++;
      waiting.forEach((connection) => void connection.end());
    }
  }

  function onDatabaseError(error: unknown): void {
    if (isLoss(error)) {
      generation++;
    }
  }

  return {
    count: urls.length,
    /**
     * Returns the URL of the server to use. With several servers, queries all of them to select one.
     *
     * @throws DatabaseError if no server is usable.
     */
    async selectUrl(): Promise<string> {
      const [only, ...others] = urls;
      if (others.length === 0) {
        return only!;
      }
      selecting ??= selectAgain().finally(() => (selecting = undefined));
      return await selecting;
    },
    /** Returns the number of times that all connections were dropped. */
    generation: () => generation,
    /**
     * Checks a new connection and prepares it.
     *
     * @throws DatabaseError if write access is needed and the server is a standby.
     */
    async admit(connection: ServerConnection): Promise<void> {
      const admittedIn = generation;
      // The server may close an idle connection.
      connection.on("error", onDatabaseError);
      connections.add(connection);
      connection.once("end", () => connections.delete(connection));
      if (access === "write") {
        const { rows } = await connection.query("SELECT pg_is_in_recovery() AS standby");
        if ((rows[0] as { readonly standby: boolean }).standby) {
          // With several servers, another one may be promoted soon, so the error is temporary.
          throw urls.length === 1
            ? new DatabaseError(describeReadOnly(describeServer(urls[0]!)), readOnly)
            : temporaryError(describeReadOnly("the server"), "unavailable", readOnly);
        }
        // Commits wait for the disk, even if the role or the database sets synchronous_commit = off.
        await connection.query(
          "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'",
        );
      }
      admitted.set(connection, admittedIn);
    },
    isAdmitted: (connection: object) => admitted.get(connection) === generation,
    /**
     * Monitors work while it waits for a response. Every 5 s it probes the server over a new connection. If the server
     * is lost, its connections are closed and the pending work rejects.
     */
    async monitor<T>(work: () => Promise<T>): Promise<T> {
      const timer = setInterval(() => {
        checking ??= check().finally(() => (checking = undefined));
      }, checkIntervalMs);
      try {
        return await work();
      } finally {
        clearInterval(timer);
      }
    },
    onDatabaseError,
  };
}

async function probe(url: string, connect: Connect, timeoutMs = probeTimeoutMs): Promise<Reachable | Unreachable> {
  try {
    const client = await connect(url, timeoutMs);
    try {
      const { rows } = await client.query(roleQuery);
      return { url, ...(rows[0] as Omit<Reachable, "url">) };
    } finally {
      void client.end();
    }
  } catch (error) {
    return { url, error };
  }
}

/** Creates a function that returns the URL of the server to use. It throws a DatabaseError if no server is usable. */
function createServerSelection(access: Access): (all: readonly (Reachable | Unreachable)[]) => string {
  /** Latest timeline of a primary seen so far. A primary with an older timeline has been replaced. */
  let latestTimeline = 0;
  return (all) => {
    const reachable = all.filter((server): server is Reachable => "isStandby" in server);
    const [standby] = reachable.filter(({ isStandby }) => isStandby);
    const [primary] = reachable
      .filter(({ isStandby, timeline }) => !isStandby && timeline >= latestTimeline)
      .toSorted((a, b) => b.timeline - a.timeline);
    const found = access === "write" ? primary : (standby ?? primary);
    if (found === undefined) {
      throw noServerError(all);
    }
    latestTimeline = Math.max(latestTimeline, primary?.timeline ?? 0);
    return found.url;
  };
}

/** SQLSTATE of a write that a standby rejects, because it is read-only. */
const readOnly = "25006";
/** SQLSTATE of a connection that could not be established. */
const unreachable = "08001";

function describeReadOnly(name: string): string {
  return `The database ${name} is a standby, which accepts no writes; give the primary, or all servers, in --database.`;
}

function noServerError(all: readonly (Reachable | Unreachable)[]): DatabaseError {
  const descriptions = all.map((server) => `${describeServer(server.url)} (${describeState(server)})`).join(", ");
  return all.every((server) => "error" in server)
    ? temporaryError(`None of the databases is reachable: ${descriptions}.`, "unavailable", unreachable)
    : temporaryError(
        `None of the databases is a primary that accepts writes: ${descriptions}.`,
        "unavailable",
        readOnly,
      );
}

function describeState(server: Reachable | Unreachable): string {
  if ("error" in server) {
    return (server.error as NodeJS.ErrnoException).code ?? errorMessage(server.error);
  }
  return server.isStandby ? "a standby" : "a primary that another server has replaced";
}
