/** Selection of one of several PostgreSQL servers by the roles that they report. */
import test from "ava";
import { openDatabase } from "../../src/db/open.js";
import { createServers, type ServerConnection, type Servers } from "../../src/db/postgresql/postgresql-servers.js";
import { DatabaseError } from "../../src/db/queries/database.js";

/** Reported role of a server, or the error of a connection to it. */
type Role = { readonly isStandby: boolean; readonly timeline: number } | Error;

/** Creates servers that report these roles, by their names. */
function serversOf(roles: Record<string, Role>): Servers {
  const urls = Object.keys(roles).map((name) => `postgres://${name}/g`);
  return createServers(urls, "write", (url) => {
    const role = roles[new URL(url).host]!;
    const client = { query: () => Promise.resolve({ rows: [role] }), end: () => Promise.resolve() };
    return role instanceof Error ? Promise.reject(role) : Promise.resolve(client as unknown as ServerConnection);
  });
}

const unreachable = Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
const standby: Role = { isStandby: true, timeline: 0 };
const primary = (timeline: number): Role => ({ isStandby: false, timeline });

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

test("drops all connections after an error that means a lost server, and after no other error", (t) => {
  const servers = serversOf({ a: primary(1) });
  const coded = (code: string): Error => Object.assign(new Error("x"), { code });
  const acquire = Object.assign(new Error("no connection is free"), { name: "KnexTimeoutError" });
  for (const error of [coded("23505"), coded("53300"), coded("57014"), acquire]) {
    servers.onDatabaseError(error);
  }
  t.is(servers.generation(), 0);
  for (const error of [coded("25006"), coded("08006"), coded("57P01"), coded("ECONNRESET"), new Error("terminated")]) {
    servers.onDatabaseError(error);
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
