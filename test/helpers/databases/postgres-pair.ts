/** A PostgreSQL primary with a synchronous standby that can swap roles, from the npm package of PostgreSQL. */
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { freePort } from "../nodes/free-port.js";
import { EmbeddedPostgres } from "./embedded-postgres.js";
import type { EndedServer } from "./postgres-server.js";
import { until } from "../nodes/until.js";

/** The end of the primary: a clean shutdown, an immediate one, or the loss of its machine. */
export type End = "stopped" | "aborted" | "killed";

/** Two synchronous servers of one database. */
export type PostgresPair = Exclude<Awaited<ReturnType<typeof startPostgresPair>>, string>;

interface Server {
  readonly dir: string;
  readonly port: number;
  process: ChildProcess | undefined;
}

const user = "gatehouse";
const signals: Readonly<Record<End, NodeJS.Signals>> = { stopped: "SIGINT", aborted: "SIGQUIT", killed: "SIGKILL" };

/** Starts a pair. Returns a reason if it cannot start. */
export async function startPostgresPair() {
  const parent = await mkdtemp(join(tmpdir(), "gatehouse-postgres-"));
  // If the tests run as root, the servers run as another user.
  await chmod(parent, 0o755);
  const [first, second] = await Promise.all(
    ["a", "b"].map(async (name) => ({ dir: join(parent, name), port: await freePort(), process: undefined })),
  );
  try {
    await initialize(first!);
    copy(first!.dir, second!.dir);
    return await openPair(await findBinary(), parent, first!, second!);
  } catch (error) {
    await rm(parent, { recursive: true, force: true });
    return error instanceof Error ? error.message : String(error);
  }
}

async function initialize({ dir, port }: Server): Promise<void> {
  const embedded = new EmbeddedPostgres({
    databaseDir: dir,
    ...{ user, password: user, port, persistent: true },
    createPostgresUser: process.getuid?.() === 0,
    // The data is temporary, so it need not reach a disk.
    initdbFlags: ["--no-sync"],
    onLog: () => undefined,
    onError: () => undefined,
  });
  await embedded.initialise();
}

/** The path of the program in the package of this platform. */
async function findBinary(): Promise<string> {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const { postgres } = (await import(`@embedded-postgres/${platform}-${process.arch}`)) as {
    readonly postgres: string;
  };
  return postgres;
}

/** Copies a directory with its owners. Ignores files that disappear meanwhile. */
function copy(from: string, to: string): void {
  try {
    execFileSync("cp", ["-a", from, to], { stdio: "ignore" });
  } catch (error) {
    if ((error as { readonly status?: number }).status !== 1) {
      throw error;
    }
  }
}

/** The user of the servers, which do not run as root. */
function idsOf(): { readonly uid?: number; readonly gid?: number } {
  if (process.getuid?.() !== 0) {
    return {};
  }
  const idOf = (flag: string): number => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  return { uid: idOf("-u"), gid: idOf("-g") };
}

function urlOf({ port }: Server, database = "gatehouse"): string {
  return `postgres://${user}:${user}@127.0.0.1:${port}/${database}`;
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

async function openPair(binary: string, parent: string, first: Server, second: Server) {
  const ids = idsOf();
  let [primary, standby] = [first, second];

  async function start(server: Server, followed?: Server): Promise<void> {
    const signal = join(server.dir, "standby.signal");
    await rm(signal, { force: true });
    if (followed !== undefined) {
      await writeFile(signal, "");
    }
    const settings = {
      listen_addresses: "127.0.0.1",
      fsync: "off",
      max_connections: "100",
      // A commit is acknowledged once both servers have it.
      synchronous_standby_names: "*",
      wal_keep_size: "1GB",
      wal_retrieve_retry_interval: "100ms",
      primary_conninfo: followed === undefined ? "" : urlOf(followed, "postgres"),
    };
    const options = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const child = spawn(binary, ["-D", server.dir, "-p", String(server.port), ...options], {
      ...ids,
      env: { ...process.env, LC_MESSAGES: "C" },
      stdio: ["ignore", "ignore", "pipe"],
    });
    server.process = child;
    let log = "";
    await new Promise<void>((resolve, reject) => {
      child.stderr.on("data", (text: Buffer) => {
        log = `${log}${text.toString()}`.slice(-4_000);
        if (/ready to accept (read-only )?connections/.test(log)) {
          resolve();
        }
      });
      child.once("exit", () => reject(new Error(`PostgreSQL ended: ${log}`)));
    });
    if (followed !== undefined) {
      // A primary that stops before its standby follows has data that the standby lacks. It cannot follow it later.
      await withClient(urlOf(followed, "postgres"), (client) =>
        until(async () => {
          const { rows } = await client.query("SELECT FROM pg_stat_replication WHERE state = 'streaming'");
          return rows.length > 0;
        }, "the standby follows"),
      );
    }
  }

  async function stop(server: Server, signal: NodeJS.Signals): Promise<void> {
    const { process: child } = server;
    server.process = undefined;
    if (child !== undefined && child.exitCode === null && child.signalCode === null) {
      const ended = once(child, "exit");
      child.kill(signal);
      await ended;
    }
  }

  /** Recreates a server from the other one. After a crash it may have data that the other one lacks. */
  async function copyFrom(from: Server, to: Server): Promise<void> {
    await rm(to.dir, { recursive: true, force: true });
    await withClient(urlOf(from, "postgres"), async (client) => {
      await client.query("SELECT pg_backup_start('copy', true)");
      copy(from.dir, to.dir);
      const { rows } = await client.query<{ labelfile: string }>("SELECT labelfile FROM pg_backup_stop(false)");
      const label = join(to.dir, "backup_label");
      await writeFile(label, rows[0]!.labelfile);
      await chown(label, ids.uid ?? -1, ids.gid ?? -1);
    });
    await Promise.all(["postmaster.pid", "postmaster.opts"].map((name) => rm(join(to.dir, name), { force: true })));
  }

  await start(first);
  await start(second, first);
  await withClient(urlOf(first, "postgres"), (client) => client.query("CREATE DATABASE gatehouse"));
  return {
    /** URL of the database on each of them. */
    urls: [urlOf(first), urlOf(second)],
    /** Returns the URL of the current primary. */
    primaryUrl: () => urlOf(primary),
    standbyUrl: () => urlOf(standby),
    /** Stops and restarts the server that is the primary at the call. */
    primary: {
      start: () => start(primary),
      stop: () => stop(primary, "SIGINT"),
      crash: (signal: NodeJS.Signals) => stop(primary, signal),
    } as EndedServer,
    /**
     * Ends the primary, promotes the standby, and restarts the old primary as the new standby. Resolves once both servers
     * are in sync.
     */
    async changePlaces(end: End): Promise<void> {
      await stop(primary, signals[end]);
      await withClient(urlOf(standby, "postgres"), (client) => client.query("SELECT pg_promote()"));
      [primary, standby] = [standby, primary];
      if (end !== "stopped") {
        await copyFrom(primary, standby);
      }
      await start(standby, primary);
    },
    /** Freezes the primary, so that it does not respond. Returns a function that resumes it. */
    freezePrimary() {
      const pids = execFileSync("pgrep", ["-P", String(primary.process!.pid)], { encoding: "utf8" });
      const all = [primary.process!.pid!, ...pids.trim().split("\n").map(Number)];
      all.forEach((pid) => process.kill(pid, "SIGSTOP"));
      return () => all.forEach((pid) => process.kill(pid, "SIGCONT"));
    },
    stopStandby: () => stop(standby, "SIGINT"),
    startStandby: () => start(standby, primary),
    /** Stops both and removes their files. */
    async remove(): Promise<void> {
      await Promise.all([stop(first, "SIGQUIT"), stop(second, "SIGQUIT")]);
      await rm(parent, { recursive: true, force: true });
    },
  };
}
