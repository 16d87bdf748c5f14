/** Which of several servers is asked, by what they say of themselves. */
import test from "ava";
import { openDatabase } from "../../src/db/open.js";
import {
  type Access,
  createServers,
  type ServerConnection,
  type Servers,
} from "../../src/db/postgresql/postgresql-servers.js";

type Said = { readonly isStandby: boolean; readonly timeline: number } | Error;

/** Servers by their names, which say this. */
function serversOf(said: Record<string, Said>, access: Access): Servers {
  const urls = Object.keys(said).map((name) => `postgres://${name}/g`);
  return createServers(urls, access, (url) => {
    const one = said[new URL(url).host]!;
    const client = { query: () => Promise.resolve({ rows: [one] }), end: () => Promise.resolve() };
    return one instanceof Error ? Promise.reject(one) : Promise.resolve(client as unknown as ServerConnection);
  });
}

const refused = Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
const standby: Said = { isStandby: true, timeline: 0 };
const primary = (timeline: number): Said => ({ isStandby: false, timeline });

test("of two that say that they are the primary, it is the one that was made it last, for good", async (t) => {
  const said: Record<string, Said> = { a: primary(1), b: standby };
  const servers = serversOf(said, "write");
  t.is(await servers.find(), "postgres://a/g");
  Object.assign(said, { a: refused, b: primary(2) });
  t.is(await servers.find(), "postgres://b/g");
  // The old one is back, and does not know that it has been replaced.
  Object.assign(said, { a: primary(1) });
  t.is(await servers.find(), "postgres://b/g");
  Object.assign(said, { b: refused });
  await t.throwsAsync(servers.find(), {
    message:
      "None of the databases is a primary that accepts writes: a/g (a primary that another server has replaced), b/g (ECONNREFUSED).",
  });
});

test("a reader takes a standby before the primary, and whatever there is", async (t) => {
  const said: Record<string, Said> = { a: primary(1), b: standby, c: refused };
  const servers = serversOf(said, "read");
  t.is(await servers.find(), "postgres://b/g");
  Object.assign(said, { b: refused });
  t.is(await servers.find(), "postgres://a/g");
  Object.assign(said, { a: refused });
  await t.throwsAsync(servers.find(), {
    message: "None of the databases is reachable: a/g (ECONNREFUSED), b/g (ECONNREFUSED), c/g (ECONNREFUSED).",
  });
});

test("connections are left when their server is lost, and not for what a query or another one did", (t) => {
  const servers = serversOf({ a: primary(1) }, "write");
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

test("no password is told of servers that cannot be reached", async (t) => {
  const urls = [9, 10].map((port) => `postgres://user:secret@127.0.0.1:${port}/name`);
  await t.throwsAsync(openDatabase(urls.join(",")), {
    message: "None of the databases is reachable: 127.0.0.1:9/name (ECONNREFUSED), 127.0.0.1:10/name (ECONNREFUSED).",
  });
});
