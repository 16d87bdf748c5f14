/** The databases of the nodes: files of SQLite, or servers of PostgreSQL that can be killed. */
import { join } from "node:path";
import { startPostgres, type PostgresServer } from "../../test/helpers/postgres-server.js";
import type { Teardown } from "../../test/helpers/teardown.js";
import type { CampaignEngine } from "../settings.js";
import { removeSqlite } from "./sqlite-files.js";

/** The databases. */
export interface Databases {
  readonly engine: CampaignEngine;
  /** For `--database` of a node. */
  urlOf(node: number): string;
  /** The file, with SQLite. */
  fileOf(node: number): string;
  /** Takes all away that is in it; its node must not run. */
  empty(node: number): Promise<void>;
  /** The servers of PostgreSQL: that of the authority, and that of the others. */
  readonly servers: readonly PostgresServer[];
  /** The authority's primary and its standby, where there are two. */
  readonly pair?: ServerPair;
}

/** A primary of PostgreSQL and its standby. */
export interface ServerPair {
  /** Ends the primary in this way, has the standby take its place, and brings the other one back as standby. */
  changePlaces(end: "stopped" | "aborted" | "killed"): Promise<void>;
}

/** Files below a directory. */
export function sqliteDatabases(homes: readonly string[]): Databases {
  const fileOf = (node: number): string => join(homes[node]!, "gatehouse.sqlite");
  return {
    engine: "sqlite",
    urlOf: (node) => `sqlite:${fileOf(node)}`,
    fileOf,
    empty: (node) => removeSqlite(fileOf(node)),
    servers: [],
  };
}

/** Two servers, one for the authority and one for the others. @returns why there are none, where they do not start */
export async function postgresDatabases(t: Teardown, count: number): Promise<Databases | string> {
  const servers: PostgresServer[] = [];
  for (let i = 0; i < 2; i++) {
    const server = await startPostgres();
    if (typeof server === "string") {
      return server;
    }
    t.teardown(() => server.remove());
    servers.push(server);
  }
  const serverOf = (node: number): PostgresServer => servers[Math.min(node, 1)]!;
  const urls = await Promise.all(Array.from({ length: count }, (_, node) => serverOf(node).createDatabase()));
  return {
    engine: "postgresql",
    urlOf: (node) => urls[node]!,
    fileOf: () => {
      throw new Error("PostgreSQL has no file.");
    },
    empty: (node) => serverOf(node).emptyDatabase(urls[node]!),
    servers,
  };
}
