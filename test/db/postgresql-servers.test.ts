/** Selection of one of several PostgreSQL servers by the roles that they report. */
import test from "ava";
import { setImmediate as nextTick } from "node:timers/promises";
import { openDatabase } from "../../src/db/open.js";
import { createServers, type ServerConnection, type ServerPool } from "../../src/db/postgresql/postgresql-servers.js";
import { DatabaseError } from "../../src/db/queries/database.js";

/** Reported role of a server, or the error of a connection to it. */
type Role = { readonly isStandby: boolean; readonly timeline: number; readonly appliedBytes: number } | Error;

/** Creates servers that report these roles, by their names. Returns the choice of a server for writes. */
const serversOf = (roles: Record<string, Role | Promise<Role>>): ServerPool => writerOf(roles).pools.write;

const unreachable = Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
const standby: Role = { isStandby: true, timeline: 0, appliedBytes: 1 };
const primary = (timeline: number): Role => ({ isStandby: false, timeline, appliedBytes: 0 });

test("selects the primary that was promoted last, and never an earlier primary again", async (t) => {
  const roles: Record<string, Role> = { a: primary(1), b: standby };
  const servers = serversOf(roles);
  t.is(await servers.selectUrl(), "postgres://a/g");
  Object.assign(roles, { a: unreachable, b: primary(2) });
  t.is(await servers.selectUrl(), "postgres://b/g");
  // The old primary is back, and does not know that it has been replaced.
  Object.assign(roles, { a: primary(1) });
  t.is(await servers.selectUrl(), "postgres://b/g");
  Object.assign(roles, { b: unreachable });
  await t.throwsAsync(servers.selectUrl(), {
    message:
      "None of the databases is a primary that accepts writes: a/g (a primary that another server has replaced), b/g (ECONNREFUSED).",
  });
});

test("a server that did not respond is waited for only as long as for the others, until it responds", async (t) => {
  const roles: Record<string, Role | Promise<Role>> = { a: primary(1), b: standby };
  const servers = serversOf(roles);
  t.is(await servers.selectUrl(), "postgres://a/g");
  // An error of the driver without a code is its time limit.
  Object.assign(roles, { a: new Error("timeout expired"), b: primary(2) });
  t.is(await servers.selectUrl(), "postgres://b/g");
  let respond = (_: Role): void => undefined;
  Object.assign(roles, { a: new Promise<Role>((resolve) => (respond = resolve)) });
  t.is(await servers.selectUrl(), "postgres://b/g", "which does not wait for the pending response");
  Object.assign(roles, { b: standby });
  await t.throwsAsync(servers.selectUrl(), {
    message: /: a\/g \(timeout expired\), b\/g \(a standby\)\.$/,
  });
  respond(primary(3));
  await nextTick();
  t.is(await servers.selectUrl(), "postgres://a/g");
});

test("drops all connections after an error that means a lost server, and after no other error", (t) => {
  const servers = serversOf({ a: primary(1) });
  const coded = (code: string): Error => Object.assign(new Error("x"), { code });
  const acquire = Object.assign(new Error("no connection is free"), { name: "KnexTimeoutError" });
  for (const error of [coded("23505"), coded("53300"), coded("57014"), acquire]) {
    servers.onDatabaseError(error, true);
  }
  t.is(servers.generation(), 0);
  for (const error of [coded("25006"), coded("08006"), coded("57P01"), coded("ECONNRESET"), new Error("terminated")]) {
    servers.onDatabaseError(error, true);
  }
  t.is(servers.generation(), 5);
});

test("the errors for unreachable servers contain no password", async (t) => {
  const [one, other] = [9, 10].map((port) => `postgres://user:secret@127.0.0.1:${port}/name`);
  for (const [url, message] of [
    [one, "The database 127.0.0.1:9/name cannot be reached (ECONNREFUSED); check that PostgreSQL is running there."],
    [
      `${one},${other}`,
      "None of the databases is reachable: 127.0.0.1:9/name (ECONNREFUSED), 127.0.0.1:10/name (ECONNREFUSED).",
    ],
  ] as const) {
    await t.throwsAsync(openDatabase(url!), { instanceOf: DatabaseError, message });
  }
});

/** Connection to a server with a role; a change of the role does not end it. */
function connectionTo(roles: Record<string, Role | Promise<Role>>, url: string): ServerConnection {
  const role = roles[new URL(url).host] as Exclude<Role, Error>;
  return {
    query: () => Promise.resolve({ rows: [{ standby: role.isStandby }] }),
    on: () => undefined,
    once: () => undefined,
    end: () => Promise.resolve(),
  };
}

/** Creates a writer's servers, and a function that connects one of its pools to the server that it selects. */
function writerOf(roles: Record<string, Role | Promise<Role>>) {
  const urls = Object.keys(roles).map((name) => `postgres://${name}/g`);
  const servers = createServers(urls, "write", async (url) => {
    const role = await roles[new URL(url).host]!;
    if (role instanceof Error) {
      throw role;
    }
    const client = { query: () => Promise.resolve({ rows: [role] }), end: () => Promise.resolve() };
    return client as unknown as ServerConnection;
  });
  const pools = { read: servers.pool("read"), write: servers.pool("write") };
  return {
    ...{ servers, pools },
    connect: async (use: "read" | "write") => {
      const url = await pools[use].selectUrl();
      const connection = connectionTo(roles, url);
      await pools[use].admit(connection);
      return { connection, host: new URL(url).host };
    },
  };
}

const applied = (appliedBytes: number): Role => ({ isStandby: true, timeline: 0, appliedBytes });
const lost = Object.assign(new Error("ended"), { code: "57P01" });

test("reads of a writer go to the latest standby only while there is no primary, and only if it is current", async (t) => {
  const roles: Record<string, Role> = { a: primary(1), b: applied(5), c: applied(9) };
  const { servers, pools, connect } = writerOf(roles);
  let isCurrent = false;
  const moves: string[] = [];
  servers.allowStandbyReads({ isCurrent: () => Promise.resolve(isCurrent), onMoved: () => void moves.push("moved") });
  await connect("write");
  const read = await connect("read");
  t.is(read.host, "a");

  roles["a"] = unreachable;
  pools.read.onDatabaseError(lost, true);
  t.false(pools.read.isAdmitted(read.connection));
  await t.throwsAsync(connect("write"), { message: /^None of the databases is a primary/ });
  await t.throwsAsync(connect("read"), { message: /is a standby/ });
  t.deepEqual(moves, []);
  isCurrent = true;
  const fallback = await connect("read");
  t.is(fallback.host, "c");
  t.true(pools.read.isAdmitted(fallback.connection));
  t.deepEqual(moves, ["moved"]);
  // Further failed writes do not end the reads.
  pools.write.onDatabaseError(lost, true);
  t.true(pools.read.isAdmitted(fallback.connection));

  roles["b"] = primary(2);
  t.is((await connect("write")).host, "b");
  t.false(pools.read.isAdmitted(fallback.connection), "the standby may lack what is written from here on");
  t.is((await connect("read")).host, "b");
  t.deepEqual(moves, ["moved", "moved"]);
});

test("ends the connections to a silent server, also if another one was selected since", async (t) => {
  const roles: Record<string, Role> = { a: primary(1), b: applied(5) };
  const { servers, pools, connect } = writerOf(roles);
  servers.allowStandbyReads({ isCurrent: () => Promise.resolve(true), onMoved: () => undefined });
  const { connection } = await connect("read");
  const ended = new Promise<never>((_, reject) => {
    connection.end = () => Promise.resolve(reject(new Error("ended")));
  });
  const read = pools.read.monitor(() => ended);
  // The error of a driver's timeout has no code.
  roles["a"] = new Error("timeout");
  t.is(await pools.read.selectUrl(), "postgres://b/g");
  await t.throwsAsync(read, { message: "ended" });
  t.is((await connect("read")).host, "b");
});

test("a write that succeeds ends the reads from a standby, even if the primary seemed to be lost", async (t) => {
  const roles: Record<string, Role> = { a: primary(1), b: applied(5) };
  const { servers, pools, connect } = writerOf(roles);
  servers.allowStandbyReads({ isCurrent: () => Promise.resolve(true), onMoved: () => undefined });
  await connect("write");
  let commit: () => void = () => undefined;
  const write = pools.write.monitor(() => new Promise<void>((resolve) => (commit = resolve)));
  pools.read.onDatabaseError(lost, true);
  roles["a"] = unreachable;
  const fallback = await connect("read");
  t.true(pools.read.isAdmitted(fallback.connection));
  commit();
  await write;
  t.false(pools.read.isAdmitted(fallback.connection));
});

test("a failure to connect leaves the connections in use alone, and selects again for the next one", async (t) => {
  const { pools, connect } = writerOf({ a: primary(1), b: applied(5) });
  const { connection } = await connect("write");
  const generation = pools.write.generation();
  pools.read.onDatabaseError(unreachable, false);
  t.true(pools.write.isAdmitted(connection));
  t.not(pools.write.generation(), generation);
});

test("reads find a standby even if no connection was open when the primary was lost", async (t) => {
  const roles: Record<string, Role> = { a: primary(1), b: applied(5) };
  const { servers, pools, connect } = writerOf(roles);
  servers.allowStandbyReads({ isCurrent: () => Promise.resolve(true), onMoved: () => undefined });
  await connect("read");
  roles["a"] = unreachable;
  pools.read.onDatabaseError(unreachable, false);
  t.is((await connect("read")).host, "b");
});

test("a process without permission for reads from a standby gets none", async (t) => {
  const { connect } = writerOf({ a: unreachable, b: applied(5) });
  await t.throwsAsync(connect("read"), { message: /^None of the databases is a primary/ });
});

test("the reason for /health numbers the servers and names no host", async (t) => {
  const { connect } = writerOf({ a: unreachable, b: applied(5) });
  const { publicReason } = await t.throwsAsync<DatabaseError>(connect("write"));
  t.is(
    publicReason,
    "none of its 2 servers is a primary that accepts writes; server 1: ECONNREFUSED; server 2: a standby",
  );
});
