/** The PostgreSQL server that all test files of a run share. `ava.config.js` sets its socket. */
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { createPostgresDatabases, type PostgresDatabases } from "./postgres-databases.js";

/** Returns the databases of the server, or a reason if it cannot start. The first call starts it for the run. */
export async function sharedPostgres(): Promise<PostgresDatabases | string> {
  const reply = await text(connect(process.env["TEST_POSTGRES"]!));
  const { url, reason } = JSON.parse(reply) as { readonly url?: string; readonly reason?: string };
  return url === undefined ? reason! : createPostgresDatabases(url);
}
