/**
 * Selects among PostgreSQL servers. The servers replicate one database: the primary accepts writes, the others are
 * standbys, and roles change at runtime. Connections go to the servers that were selected last. If one is lost, or the
 * primary is no longer one, its connections are dropped and the servers are queried again.
 */
import { errorMessage } from "../../base/errors/error-message.js";
import { DatabaseError, type PoolUse, type StandbyReads, temporaryError } from "../queries/database.js";

/**
 * Access to the database. `write`: reads and writes go to the primary; reads may go to a standby while there is no
 * primary. `follow`: reads prefer a standby, writes go to the primary. `read`: everything prefers a standby.
 */
export type Access = "write" | "follow" | "read";

/** Connection to a server, as the driver provides it. */
export interface ServerConnection {
  query(text: string): Promise<{ readonly rows: readonly object[] }>;
  on(event: "error", listener: (error: unknown) => void): unknown;
  once(event: "end", listener: () => void): unknown;
  /** Closes the connection and rejects its pending queries. */
  end(): Promise<void>;
}

type ServerRole = "primary" | "standby";

interface Reachable {
  readonly url: string;
  readonly isStandby: boolean;
  /** Number that increases with each promotion of a standby; 0 for a standby. */
  readonly timeline: number;
  /** Bytes of the log that a standby has applied; 0 for a primary. */
  readonly appliedBytes: number;
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
const checkTimeoutMs = 4_000;
/** Interval in milliseconds between probes of the server while a response is awaited. */
const checkIntervalMs = 2_000;

/** Interval in milliseconds between searches for a primary while reads go to a standby instead. */
const searchIntervalMs = 1_000;

const roleQuery = `SELECT standby AS "isStandby",
  CASE WHEN standby THEN 0 ELSE CAST(CAST('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8) AS bit(32)) AS integer)
  END AS timeline,
  CASE WHEN standby THEN CAST(coalesce(pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0'), 0) AS double precision) ELSE 0
  END AS "appliedBytes"
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

/** Returns true for the error of a probe without a response: a timeout of the driver has no code. */
function isTimeout(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === undefined;
}

/** Returns the host and database of a URL, without the password, for messages. */
export function describeServer(url: string): string {
  const { host, pathname } = new URL(url);
  return `${host}${pathname}`;
}

/** Servers of a database, with the rules by which the two uses of connections choose among them. */
export type Servers = ReturnType<typeof createServers>;

/** Choice of a server for one use of connections. */
export type ServerPool = ReturnType<Servers["pool"]>;

export function createServers(urls: readonly string[], access: Access, connect: Connect) {
  const states = createServerStates(urls.length);
  /** Servers of open connections. */
  const connections = new Map<ServerConnection, { readonly url: string; readonly role: ServerRole }>();
  /** Open connections that passed the checks, with the number of losses of servers of that role before the checks. */
  const admitted = new WeakMap<object, { readonly role: ServerRole; readonly losses: number }>();
  /** Servers that did not respond to their last probe, with its error. */
  const silent = new Map<string, unknown>();
  let standbyReads: StandbyReads | undefined;
  let surveying: Promise<Survey> | undefined;
  let search: NodeJS.Timeout | undefined;
  let readRole: ServerRole | undefined;

  /** Queries the roles of all servers. */
  function survey(): Promise<Survey> {
    surveying ??= probeAll()
      .then((all) => states.select(all))
      .finally(() => (surveying = undefined));
    return surveying;
  }

  /**
   * Probes all servers. A server that did not respond last time, as one that is frozen or cut off, is waited for only
   * as long as for the others, so that it does not delay each new connection to them.
   */
  async function probeAll(): Promise<(Reachable | Unreachable)[]> {
    const earlier = new Map(silent);
    const probes = urls.map((url) => probeServer(url));
    const others = Promise.all(probes.filter((_, i) => !earlier.has(urls[i]!)));
    const probeSilent = async (url: string, probing: Promise<Reachable | Unreachable>) =>
      await Promise.race([probing, others.then((): Unreachable => ({ url, error: earlier.get(url) }))]);
    const isAnyAnswering = earlier.size < urls.length;
    return await Promise.all(
      probes.map((probing, i) => (isAnyAnswering && earlier.has(urls[i]!) ? probeSilent(urls[i]!, probing) : probing)),
    );
  }

  async function probeServer(url: string, timeoutMs?: number): Promise<Reachable | Unreachable> {
    const server = await probe(url, connect, timeoutMs);
    if ("error" in server && isTimeout(server.error)) {
      silent.set(url, server.error);
    } else {
      silent.delete(url);
    }
    return server;
  }

  /** Moves reads back from a standby once there is a primary, for a process that does not write by itself. */
  async function searchPrimary(): Promise<void> {
    const isInUse = [...connections.values()].some(({ role }) => role === "standby");
    if (states.hasPrimary() || !isInUse) {
      clearInterval(search);
      search = undefined;
      return;
    }
    const seenIn = states.losses("primary");
    const { primary } = await survey();
    if (primary !== undefined) {
      states.sawPrimary(seenIn);
    }
  }

  /**
   * Checks that a standby may serve the reads of a process that reads the primary otherwise.
   *
   * @throws DatabaseError if it may not.
   */
  async function checkStandbyReads(connection: ServerConnection): Promise<void> {
    const rows = async (text: string): Promise<readonly object[]> => (await connection.query(text)).rows;
    const isCurrent = standbyReads !== undefined && !states.hasPrimary() && (await standbyReads.isCurrent(rows));
    // A primary may have been found in the meantime, and the process may have written to it.
    if (!isCurrent || states.hasPrimary()) {
      throw readOnlyError(urls);
    }
    search ??= setInterval(() => void searchPrimary(), searchIntervalMs).unref();
  }

  /** Returns the choice of a server for connections of one use. */
  function pool(use: PoolUse) {
    const isWriting = use === "write" && access !== "read";
    const isPrimaryOnly = isWriting || access === "write";
    let [current] = urls;
    let role: ServerRole = isPrimaryOnly ? "primary" : "standby";
    let checking: Promise<void> | undefined;

    function choose({ primary, standby, latestStandby, describe }: Survey): Reachable {
      const other = !isPrimaryOnly ? (standby ?? primary) : primary;
      const isFallback = !isWriting && standbyReads !== undefined;
      const chosen = other ?? (isFallback ? latestStandby : undefined);
      if (chosen === undefined) {
        throw describe();
      }
      return chosen;
    }

    /**
     * Probes the servers in use: work may wait for one that new connections have left. Each time, a host that is cut off
     * sends nothing, and TCP would retransmit for minutes.
     */
    async function check(): Promise<void> {
      const inUse = new Map([...connections.values()].map((used) => [used.url, used.role]));
      await Promise.all([...inUse.set(current!, role)].map(([url, usedAs]) => checkServer(url, usedAs)));
    }

    /** Probes a server and drops its connections if it is lost. */
    async function checkServer(url: string, usedAs: ServerRole): Promise<void> {
      const waiting = [...connections].filter(([, connected]) => connected.url === url);
      const server = await probeServer(url, checkTimeoutMs);
      const isLost = "error" in server ? isLoss(server.error) : usedAs === "primary" && server.isStandby;
      if (isLost) {
        states.lose(usedAs);
        waiting.forEach(([connection]) => void connection.end());
      }
    }

    /** @param hasConnection false if no connection was made. Those in use may still be fine, as with a busy server. */
    function onDatabaseError(error: unknown, hasConnection: boolean): void {
      if (!isLoss(error)) {
        return;
      }
      if (hasConnection) {
        states.lose(role);
      } else {
        states.selectAgain();
      }
    }

    /** Checks the role of the server of a new connection. */
    async function checkRole(connection: ServerConnection): Promise<ServerRole> {
      const { rows } = await connection.query("SELECT pg_is_in_recovery() AS standby");
      const found = (rows[0] as { readonly standby: boolean }).standby ? "standby" : "primary";
      if (found === "standby" && isWriting) {
        throw readOnlyError(urls);
      }
      if (found === "standby" && isPrimaryOnly) {
        await checkStandbyReads(connection);
      }
      return found;
    }

    return {
      /**
       * Returns the URL of the server to use. With several servers, queries all of them to select one.
       *
       * @throws DatabaseError if no server is usable.
       */
      async selectUrl(): Promise<string> {
        if (urls.length > 1) {
          const chosen = choose(await survey());
          current = chosen.url;
          role = chosen.isStandby ? "standby" : "primary";
        }
        return current!;
      },
      /** Returns a number that changes when another server may have to be selected. */
      generation: () => states.generation(),
      /**
       * Checks a new connection.
       *
       * @throws DatabaseError if write access is needed and the server is a standby.
       */
      async admit(connection: ServerConnection): Promise<void> {
        const losses = { primary: states.losses("primary"), standby: states.losses("standby") };
        // The server may close an idle connection.
        connection.on("error", (error) => onDatabaseError(error, true));
        const url = current!;
        connections.set(connection, { url, role });
        connection.once("end", () => connections.delete(connection));
        const found = await checkRole(connection);
        role = found;
        connections.set(connection, { url, role: found });
        if (found === "primary") {
          states.sawPrimary(losses.primary);
        }
        if (use === "read" && access === "write" && found !== readRole) {
          const isMoved = readRole !== undefined;
          readRole = found;
          if (isMoved) {
            standbyReads?.onMoved();
          }
        }
        admitted.set(connection, { role: found, losses: losses[found] });
      },
      isAdmitted(connection: object): boolean {
        const entry = admitted.get(connection);
        const isReplaced = isPrimaryOnly && entry?.role === "standby" && states.hasPrimary();
        return entry !== undefined && !isReplaced && entry.losses === states.losses(entry.role);
      },
      /**
       * Monitors work while it waits for a response. Every 2 s it probes the servers over new connections. If one
       * is lost, its connections are closed and the pending work rejects.
       */
      async monitor<T>(work: () => Promise<T>): Promise<T> {
        const timer = setInterval(() => {
          checking ??= check().finally(() => (checking = undefined));
        }, checkIntervalMs);
        try {
          const result = await work();
          if (isWriting) {
            // From here on, this process may show what it has written, which a standby may lack.
            states.sawPrimary(states.losses("primary"));
          }
          return result;
        } finally {
          clearInterval(timer);
        }
      },
      onDatabaseError,
    };
  }

  return {
    count: urls.length,
    pool,
    /** Lets a standby serve reads of this process, which writes to the primary, while there is no primary. */
    allowStandbyReads(rules: StandbyReads): void {
      standbyReads = rules;
    },
  };
}

/** Servers that can be used, and the error for a use that none of them suits. */
interface Survey {
  readonly primary: Reachable | undefined;
  /** First standby in the order of the URLs. */
  readonly standby: Reachable | undefined;
  /** Standby that has applied the most. */
  readonly latestStandby: Reachable | undefined;
  readonly describe: () => DatabaseError;
}

/** Number of losses at which no primary was seen. */
const never = -1;

/** Creates the knowledge about the servers that both uses of connections share. */
function createServerStates(count: number) {
  const losses = { primary: 0, standby: 0 };
  /** Number of losses of the primary when one was seen last. */
  let primarySeenIn = never;
  let generation = 0;
  /** Latest timeline of a primary seen so far. A primary with an older timeline has been replaced. */
  let latestTimeline = 0;
  const hasPrimary = (): boolean => primarySeenIn === losses.primary;
  return {
    losses: (role: ServerRole) => losses[role],
    generation: () => generation,
    /** Returns true if a primary was seen, and was not lost since. */
    hasPrimary,
    lose(role: ServerRole): void {
      losses[role]++;
      generation++;
    },
    /** Makes new connections select a server again. */
    selectAgain(): void {
      generation++;
    },
    /** Records a primary that was seen after this number of losses. */
    sawPrimary(seenIn: number): void {
      if (!hasPrimary()) {
        primarySeenIn = seenIn;
        generation++;
      }
    },
    select(all: readonly (Reachable | Unreachable)[]): Survey {
      const reachable = all.filter((server): server is Reachable => "isStandby" in server);
      const standbys = reachable.filter(({ isStandby }) => isStandby);
      const [primary] = reachable
        .filter(({ isStandby, timeline }) => !isStandby && timeline >= latestTimeline)
        .toSorted((a, b) => b.timeline - a.timeline);
      latestTimeline = Math.max(latestTimeline, primary?.timeline ?? 0);
      // Connections to a primary that only responds late stay in use, and the next write over one of them shows it.
      primarySeenIn = primary === undefined ? never : primarySeenIn;
      const [latestStandby] = standbys.toSorted((a, b) => b.appliedBytes - a.appliedBytes);
      return { primary, standby: standbys[0], latestStandby, describe: () => noServerError(all, count) };
    },
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

/** SQLSTATE of a write that a standby rejects, because it is read-only. */
const readOnly = "25006";
/** SQLSTATE of a connection that could not be established. */
const unreachable = "08001";

/** Returns the error for a server that is a standby. With several servers another one may be promoted soon. */
function readOnlyError([only, ...others]: readonly string[]): DatabaseError {
  const message = (name: string): string =>
    `The database ${name} is a standby, which accepts no writes; give the primary, or all servers, in --database.`;
  return others.length === 0
    ? new DatabaseError(message(describeServer(only!)), readOnly, "its server is a standby")
    : temporaryError(message("the server"), "unavailable", readOnly, "the server is a standby now");
}

function noServerError(all: readonly (Reachable | Unreachable)[], count: number): DatabaseError {
  const isUnreachable = all.every((server) => "error" in server);
  const problem = isUnreachable ? "is reachable" : "is a primary that accepts writes";
  const named = all.map((server) => `${describeServer(server.url)} (${describeState(server)})`).join(", ");
  const numbered = all.map((server, i) => `server ${i + 1}: ${describeState(server)}`).join("; ");
  return temporaryError(
    `None of the databases ${problem}: ${named}.`,
    "unavailable",
    isUnreachable ? unreachable : readOnly,
    `none of its ${count} servers ${problem}; ${numbered}`,
  );
}

function describeState(server: Reachable | Unreachable): string {
  if ("error" in server) {
    return (server.error as NodeJS.ErrnoException).code ?? errorMessage(server.error);
  }
  return server.isStandby ? "a standby" : "a primary that another server has replaced";
}
