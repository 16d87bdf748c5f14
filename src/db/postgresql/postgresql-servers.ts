/**
 * Which of several servers of PostgreSQL is asked. They hold one database, of which one server is the primary, which
 * alone takes writes, and the others are its standbys; which is which changes while they run. A connection goes to the
 * server that was found last. When that one is lost, or is not the primary any more, all connections are left, and the
 * servers are asked anew.
 */
import { errorMessage } from "../../base/errors/error-message.js";
import { DatabaseError, passing } from "../queries/database.js";

/** What a node does with its database: who writes needs the primary, who reads is served by a standby, too. */
export type Access = "write" | "read";

/** A connection to a server, as the driver has it. */
export interface ServerConnection {
  query(text: string): Promise<{ readonly rows: readonly object[] }>;
  on(event: "error", listener: (error: unknown) => void): unknown;
  once(event: "end", listener: () => void): unknown;
  /** Ends it, and what waits for an answer on it. */
  end(): Promise<void>;
}

/** The servers of a database. */
export interface Servers {
  /** How many are known. */
  readonly count: number;
  /**
   * The URL of the server that is to be asked now. Of several, all are asked which of them that is.
   *
   * @throws DatabaseError when there is none.
   */
  find(): Promise<string>;
  /** How often the servers were left. */
  generation(): number;
  /**
   * Looks at a new connection, and prepares it.
   *
   * @throws DatabaseError when its server takes no writes and has to.
   */
  admit(connection: ServerConnection): Promise<void>;
  /** Whether a connection is still to be used. */
  isAdmitted(connection: object): boolean;
  /**
   * Watches over what waits for an answer: when it waits for long, the server is asked by a new connection whether it is
   * there. One that is not is left, and what waits for it rejects.
   */
  watch<T>(work: () => Promise<T>): Promise<T>;
  /** Leaves all connections, when this is how a server is lost. */
  onTrouble(error: unknown): void;
}

/** What a server says of itself. */
interface Seen {
  readonly url: string;
  readonly isStandby: boolean;
  /** Grows with each standby that becomes the primary; 0 for a standby. */
  readonly timeline: number;
}

/** A server that was asked in vain. */
interface Unseen {
  readonly url: string;
  readonly error: unknown;
}

/** Opens a connection to a server, which is its caller's to end. */
export type Connect = (url: string, withinMs: number) => Promise<ServerConnection>;

/** How long each of several servers has to say what it is. Finding one and connecting to it is waited for for 2 s. */
const lookWithinMs = 1_000;
/** How long a server in doubt has: one that has much to do makes a connection late, and its other ones still serve. */
const checkWithinMs = 5_000;
/** How long an answer is waited for before the server is asked whether it is there, again and again. */
const doubtAfterMs = 5_000;

const whatItIs = `SELECT standby AS "isStandby",
  CASE WHEN standby THEN 0 ELSE CAST(CAST('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8) AS bit(32)) AS integer)
  END AS timeline
  FROM pg_is_in_recovery() AS standby`;

/**
 * How a server is lost: no connection, none any more, it stops or starts, or it has become a standby. A time that is
 * over says so in words alone; one that was spent waiting for others of this process does not.
 */
function isLoss(error: unknown): boolean {
  const { code, name } = error as NodeJS.ErrnoException;
  return code === undefined ? name !== "KnexTimeoutError" : /^(08|25006|57P0|E[A-Z])/.test(code);
}

/** What of a URL may be told: host and database, without the password. */
export function nameServer(url: string): string {
  const { host, pathname } = new URL(url);
  return `${host}${pathname}`;
}

/** The servers at these URLs. */
export function createServers(urls: readonly string[], access: Access, connect: Connect): Servers {
  const admitted = new WeakMap<object, number>();
  let generation = 0;
  let finding: Promise<string> | undefined;
  let checking: Promise<void> | undefined;
  /** Where connections go. */
  let [current] = urls;
  const connections = new Set<ServerConnection>();
  const choose = createChoice(access);

  async function findAmong(): Promise<string> {
    current = choose(await Promise.all(urls.map((url) => look(url, connect))));
    return current;
  }

  /** A machine that is cut off says nothing, and the system goes on sending to it for minutes. */
  async function check(): Promise<void> {
    const waiting = [...connections];
    const one = await look(current!, connect, checkWithinMs);
    const isLost = "error" in one ? isLoss(one.error) : access === "write" && one.isStandby;
    if (isLost) {
      generation++;
      waiting.forEach((connection) => void connection.end());
    }
  }

  /** Leaves all connections, when this is how a server is lost. */
  function onTrouble(error: unknown): void {
    if (isLoss(error)) {
      generation++;
    }
  }

  return {
    count: urls.length,
    async find() {
      const [only, ...others] = urls;
      if (others.length === 0) {
        return only!;
      }
      finding ??= findAmong().finally(() => (finding = undefined));
      return await finding;
    },
    generation: () => generation,
    async admit(connection) {
      const mine = generation;
      // It is ended by the server while nobody uses it.
      connection.on("error", onTrouble);
      connections.add(connection);
      connection.once("end", () => connections.delete(connection));
      if (access === "write") {
        const { rows } = await connection.query("SELECT pg_is_in_recovery() AS standby");
        if ((rows[0] as { readonly standby: boolean }).standby) {
          // Of several servers another one may be the primary in a moment.
          throw urls.length === 1
            ? new DatabaseError(takesNoWrites(nameServer(urls[0]!)), readOnly)
            : passing(takesNoWrites("the server"), "unavailable", readOnly);
        }
        await waitForDisk(connection);
      }
      admitted.set(connection, mine);
    },
    isAdmitted: (connection) => admitted.get(connection) === generation,
    async watch(work) {
      const doubt = setInterval(() => {
        checking ??= check().finally(() => (checking = undefined));
      }, doubtAfterMs);
      try {
        return await work();
      } finally {
        clearInterval(doubt);
      }
    },
    onTrouble,
  };
}

/** Asks a server what it is. */
async function look(url: string, connect: Connect, withinMs = lookWithinMs): Promise<Seen | Unseen> {
  try {
    const client = await connect(url, withinMs);
    try {
      const { rows } = await client.query(whatItIs);
      return { url, ...(rows[0] as Omit<Seen, "url">) };
    } finally {
      void client.end();
    }
  } catch (error) {
    return { url, error };
  }
}

/** Chooses the server that is to be asked, and gives its URL. Throws a DatabaseError when there is none. */
function createChoice(access: Access): (all: readonly (Seen | Unseen)[]) => string {
  /** Of the newest primary that was seen: one of an older timeline has been replaced. */
  let newestTimeline = 0;
  return (all) => {
    const seen = all.filter((one): one is Seen => "isStandby" in one);
    const [standby] = seen.filter(({ isStandby }) => isStandby);
    const [primary] = seen
      .filter(({ isStandby, timeline }) => !isStandby && timeline >= newestTimeline)
      .toSorted((a, b) => b.timeline - a.timeline);
    const found = access === "write" ? primary : (standby ?? primary);
    if (found === undefined) {
      throw whyNone(all);
    }
    newestTimeline = Math.max(newestTimeline, primary?.timeline ?? 0);
    return found.url;
  };
}

/** Has what this connection commits wait for the disk, where the role or the database says that it need not. */
async function waitForDisk(connection: ServerConnection): Promise<void> {
  await connection.query(
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'",
  );
}

/** SQLSTATE of a statement that a standby refuses: it can only be read. */
const readOnly = "25006";
/** SQLSTATE of a connection that could not be made. */
const unreachable = "08001";

function takesNoWrites(name: string): string {
  return `The database ${name} is a standby, which takes no writes; name the primary, or all of the servers, in --database.`;
}

function whyNone(all: readonly (Seen | Unseen)[]): DatabaseError {
  const told = all.map((one) => `${nameServer(one.url)} (${"error" in one ? whyUnseen(one.error) : whatIs(one)})`);
  return all.every((one) => "error" in one)
    ? passing(`None of the databases can be reached: ${told.join(", ")}.`, "unavailable", unreachable)
    : passing(`None of the databases is a primary that takes writes: ${told.join(", ")}.`, "unavailable", readOnly);
}

function whyUnseen(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? errorMessage(error);
}

function whatIs({ isStandby }: Seen): string {
  return isStandby ? "a standby" : "a primary that another one has replaced";
}
