/** The PostgreSQL databases of a campaign: a fault of one node's server does not reach another node. */
import test from "ava";
import pg from "pg";
import { type Databases, postgresDatabases } from "../../tools/campaign/nodes/databases.js";
import { testUnless } from "../helpers/nodes/when.js";

const [authority, follower, otherFollower] = [0, 1, 2];

const ends: (() => unknown)[] = [];
const started = await postgresDatabases({ teardown: (end) => void ends.unshift(end) }, 3);
const testPostgres = testUnless(typeof started === "string" ? started : undefined);
const databases = started as Databases;
test.after.always(() => Promise.all(ends.map((end) => end())));

testPostgres("a node's database can be used and emptied while the server of another node is down", async (t) => {
  const query = async (node: number, sql: string): Promise<unknown[]> => {
    const client = new pg.Client({ connectionString: databases.urlOf(node).split(",")[0]! });
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(sql)).rows;
    } finally {
      await client.end();
    }
  };
  await databases.servers[follower]!.crash("SIGKILL");
  await t.throwsAsync(query(follower, "SELECT 1"), { code: "ECONNREFUSED" });

  await query(otherFollower, "CREATE TABLE kept (n integer)");
  await databases.empty(otherFollower);
  t.deepEqual(await query(otherFollower, "SELECT to_regclass('kept') AS kept"), [{ kept: null }]);
  t.deepEqual(await query(authority, "SELECT 1 AS one"), [{ one: 1 }]);
});
