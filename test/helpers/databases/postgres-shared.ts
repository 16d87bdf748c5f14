/** The PostgreSQL server that all test files of a run share; `ava.config.js` says where it is. */
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { createPostgresDatabases, type PostgresDatabases } from "./postgres-databases.js";

/** Returns the server's databases, or why there is no server. The first file that asks starts it; it ends with the run. */
export async function sharedPostgres(): Promise<PostgresDatabases | string> {
  const reply = await text(connect(process.env["TEST_POSTGRES"]!));
  const { url, reason } = JSON.parse(reply) as { readonly url?: string; readonly reason?: string };
  return url === undefined ? reason! : createPostgresDatabases(url);
}
