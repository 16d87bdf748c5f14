/** Three PostgreSQL servers under Patroni with one etcd, by the files of deploy/patroni, all on loopback. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, chown, mkdir, readFile, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import pg from "pg";
import { freePort } from "../nodes/free-port.js";
import { type Teardown, temporaryDirectory } from "../nodes/teardown.js";
import { eventually, until } from "../nodes/until.js";
import { isInstalled, whyNotInstalled } from "../process/programs.js";

/** Directory of the PostgreSQL programs of the newest installed Debian package. */
const binDir = ["18", "17", "16", "15", "14"]
  .map((version) => `/usr/lib/postgresql/${version}/bin`)
  .find((path) => existsSync(path));

/** The reason that no cluster can run here; undefined if one can. */
export const whyNoPatroni = whyNotInstalled({
  ...{ patroni: isInstalled("patroni"), "etcd-server": isInstalled("etcd"), haproxy: isInstalled("haproxy") },
  postgresql: binDir !== undefined,
});

/** Settings in seconds that a test changes, so that it waits less. */
export interface PatroniTimes {
  readonly ttl: number;
  readonly loop_wait: number;
  readonly retry_timeout: number;
}

interface Member {
  readonly name: string;
  readonly port: number;
  readonly restPort: number;
  readonly dataDir: string;
  readonly process: ChildProcess;
}

export type PatroniCluster = Awaited<ReturnType<typeof startPatroniCluster>>;

const user = "gatehouse";

/** Starts a cluster with an empty database `gatehouse`. The teardown ends all of its processes. */
export async function startPatroniCluster(t: Teardown, times: PatroniTimes) {
  const parent = await temporaryDirectory(t);
  await chmod(parent, 0o755);
  const ids = postgresIds();
  const etcdPort = await freePort();
  const startEtcd = async (): Promise<ChildProcess> => await runEtcd(t, parent, etcdPort);
  let etcd = await startEtcd();
  const [template, balancer] = await Promise.all(
    ["patroni.yml", "haproxy.cfg"].map((name) => readFile(`deploy/patroni/${name}`, "utf8")),
  );
  const members: Member[] = [];
  for (const name of ["db1", "db2", "db3"]) {
    const home = join(parent, name);
    await mkdir(home);
    const addresses = { name, home, port: await freePort(), restPort: await freePort(), etcdPort };
    const file = join(home, "patroni.yml");
    await writeFile(file, adaptPatroni(template!, addresses, times));
    for (const path of [home, file]) {
      await chown(path, ids.uid ?? -1, ids.gid ?? -1);
    }
    const child = spawn("patroni", [file], {
      ...{ ...ids, cwd: home, env: { ...process.env, HOME: home } },
      stdio: ["ignore", "ignore", "pipe"],
    });
    // The log of Patroni, for a test that fails.
    let log = "";
    child.stderr.on("data", (text: Buffer) => (log = `${log}${text.toString()}`.slice(-100_000)));
    const member = { ...addresses, dataDir: join(home, "data"), process: child };
    t.teardown(() => endMember(member));
    members.push(member);
    if (process.env["PATRONI_LOGS"] !== undefined) {
      t.teardown(() => writeFile(join(process.env["PATRONI_LOGS"]!, `${name}.log`), log));
    }
  }
  const haproxyPort = await runHaproxy(t, parent, balancer!, members);

  const adminUrl = ({ port }: Member): string => `postgres://postgres:change-me-superuser@127.0.0.1:${port}/postgres`;
  const isLeader = async ({ restPort }: Member): Promise<boolean> =>
    (await fetch(`http://127.0.0.1:${restPort}/primary`, { signal: AbortSignal.timeout(1_000) })).status === 200;

  /** Returns the member that is the primary, as its own Patroni says. */
  async function primary(): Promise<Member> {
    let found: Member | undefined;
    await until(async () => {
      const leading = await Promise.all(members.map((member) => isLeader(member).catch(() => false)));
      found = members.find((_, i) => leading[i]);
      return found !== undefined;
    }, "the cluster has a primary");
    return found!;
  }

  /** Resolves once all members but these follow the primary, one of them synchronously. */
  async function hasStandbys(count = members.length - 1): Promise<void> {
    await eventually(`${count} standbys follow`, async () => {
      const rows = await query(adminUrl(await primary()), replication);
      return rows.length >= count && rows.some(({ state }) => state === "sync" || state === "quorum");
    });
  }

  await hasStandbys();
  for (const statement of [`CREATE ROLE ${user} LOGIN PASSWORD '${user}'`, `CREATE DATABASE ${user} OWNER ${user}`]) {
    await query(adminUrl(await primary()), statement);
  }
  const withPassword = (to: number): string => `postgres://${user}:${user}@127.0.0.1:${to}/${user}`;
  return {
    /** URLs of the database on all servers. */
    urls: members.map((member) => withPassword(member.port)).join(","),
    /** URL of the database through the proxy, which leads to the primary. */
    proxyUrl: withPassword(haproxyPort),
    hasStandbys,
    /** Kills PostgreSQL on the primary. Patroni stays. */
    async killPrimary(): Promise<void> {
      process.kill(await postmasterOf(await primary()), "SIGKILL");
    },
    /** Hands the role of the primary over to a standby. */
    async switchOver(): Promise<void> {
      // Patroni records the synchronous standby some time after PostgreSQL has one.
      await eventually("Patroni accepts the switchover", async () => {
        const { name, restPort } = await primary();
        const url = `http://127.0.0.1:${restPort}/switchover`;
        const request = { method: "POST", body: JSON.stringify({ leader: name }) };
        if ((await fetch(url, request)).status !== 401) {
          throw new Error("Patroni accepts a switchover of a caller without a password.");
        }
        const headers = { authorization: `Basic ${btoa("patroni:change-me-restapi")}` };
        return (await fetch(url, { ...request, headers })).ok;
      });
    },
    /** Freezes the machine of the primary: PostgreSQL and its Patroni. Returns a function that resumes it. */
    async freezePrimary(): Promise<() => void> {
      const member = await primary();
      const pids = [member.process.pid!, ...descendantsOf(await postmasterOf(member))];
      pids.forEach((pid) => process.kill(pid, "SIGSTOP"));
      const resume = (): void => pids.forEach((pid) => signalIfRunning(pid, "SIGCONT"));
      t.teardown(resume);
      return resume;
    },
    /** Stops etcd. Returns a function that starts it again, with its data. */
    async stopEtcd(): Promise<() => Promise<void>> {
      const ended = once(etcd, "exit");
      etcd.kill("SIGKILL");
      await ended;
      return async () => {
        etcd = await startEtcd();
      };
    },
    primaryName: async () => (await primary()).name,
  };
}

const replication = "SELECT sync_state AS state FROM pg_stat_replication WHERE state = 'streaming'";

/** Replaces what an operator would adapt. Throws an Error if a value is not in the file. */
function adapt(text: string, replacements: readonly (readonly [from: string | RegExp, to: string])[]): string {
  return replacements.reduce((adapted, [from, to]) => {
    if (!(typeof from === "string" ? adapted.includes(from) : adapted.search(from) >= 0)) {
      throw new Error(`${String(from)} is not in the file of deploy/patroni`);
    }
    return adapted.replaceAll(from, to);
  }, text);
}

function adaptPatroni(
  text: string,
  { name, home, port, restPort, etcdPort }: Omit<Member, "process" | "dataDir"> & { home: string; etcdPort: number },
  times: PatroniTimes,
): string {
  return adapt(text, [
    ["name: db1", `name: ${name}`],
    [/(0\.0\.0\.0|db1\.example\.org):8008/g, `127.0.0.1:${restPort}`],
    [/(0\.0\.0\.0|db1\.example\.org):5432/g, `127.0.0.1:${port}`],
    [/hosts: .*/g, `hosts: 127.0.0.1:${etcdPort}`],
    ["/var/lib/postgresql/gatehouse", join(home, "data")],
    ["/usr/lib/postgresql/15/bin", binDir!],
    ["10.0.0.0/8", "127.0.0.0/8"],
    // The servers of a test need no disk, and the socket's directory of the package belongs to its service.
    ["max_connections: 200", `max_connections: 200\n        fsync: off\n        unix_socket_directories: ${home}`],
    ...Object.entries(times).map(([key, value]) => [new RegExp(`${key}: \\d+`, "g"), `${key}: ${value}`] as const),
  ]);
}

/** The user of the servers, which do not run as root. */
function postgresIds(): { readonly uid?: number; readonly gid?: number } {
  if (process.getuid?.() !== 0) {
    return {};
  }
  const idOf = (flag: string): number => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  return { uid: idOf("-u"), gid: idOf("-g") };
}

async function runEtcd(t: Teardown, parent: string, port: number): Promise<ChildProcess> {
  const [url, peerUrl] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${await freePort()}`];
  const child = spawn(
    "etcd",
    [
      ...["--data-dir", join(parent, "etcd"), "--name", "etcd1", "--listen-client-urls", url],
      ...["--advertise-client-urls", url, "--listen-peer-urls", peerUrl, "--unsafe-no-fsync"],
      ...["--initial-advertise-peer-urls", peerUrl, "--initial-cluster", `etcd1=${peerUrl}`],
    ],
    { stdio: "ignore" },
  );
  t.teardown(() => end(child));
  await eventually("etcd responds", async () => (await fetch(`${url}/health`)).ok);
  return child;
}

async function runHaproxy(t: Teardown, parent: string, text: string, members: readonly Member[]): Promise<number> {
  const port = await freePort();
  const file = join(parent, "haproxy.cfg");
  const servers = members.map(
    ({ name, port: to, restPort }) =>
      [
        `server ${name} ${name}.example.org:5432 check port 8008`,
        `server ${name} 127.0.0.1:${to} check port ${restPort}`,
      ] as const,
  );
  await writeFile(file, adapt(text, [["bind *:5000", `bind 127.0.0.1:${port}`], ...servers]));
  const child = spawn("haproxy", ["-f", file], { stdio: "ignore" });
  t.teardown(() => end(child));
  return port;
}

/** Ends Patroni, and the PostgreSQL that outlives it. */
async function endMember(member: Member): Promise<void> {
  await end(member.process);
  const postmaster = await postmasterOf(member).catch(() => undefined);
  if (postmaster !== undefined && signalIfRunning(postmaster, "SIGQUIT")) {
    await until(async () => !(await isListening(member.port)), "PostgreSQL ends");
  }
}

async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }
}

async function postmasterOf({ dataDir }: Member): Promise<number> {
  const [pid] = (await readFile(join(dataDir, "postmaster.pid"), "utf8")).split("\n");
  return Number(pid);
}

function descendantsOf(pid: number): number[] {
  const children = execFileSync("pgrep", ["-P", String(pid)], { encoding: "utf8" });
  return [pid, ...children.trim().split("\n").map(Number)];
}

/** Sends a signal. Returns false if the process does not run any more. */
function signalIfRunning(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch {
    return false;
  }
}

async function query(url: string, text: string): Promise<readonly { readonly state?: string }[]> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return (await client.query<{ state?: string }>(text)).rows;
  } finally {
    await client.end();
  }
}
