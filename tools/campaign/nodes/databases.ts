/** The databases of the nodes: files of SQLite, or servers of PostgreSQL that can be killed. */
import { join } from "node:path";
import { type PostgresPair, startPostgresPair } from "../../../test/helpers/databases/postgres-pair.js";
import { type EndedServer, startPostgres } from "../../../test/helpers/databases/postgres-server.js";
import type { Teardown } from "../../../test/helpers/nodes/teardown.js";
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
  /** The servers of PostgreSQL that can be ended: that of the authority, and that of the others. */
  readonly servers: readonly EndedServer[];
  /** The authority's primary and its standby, with PostgreSQL. */
  readonly pair?: PostgresPair;
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

/**
 * A primary and its standby for the authority, and a server for the others.
 *
 * @returns why there are none, where they do not start
 */
export async function postgresDatabases(t: Teardown, count: number): Promise<Databases | string> {
  const pair = await startPostgresPair();
  if (typeof pair === "string") {
    return pair;
  }
  t.teardown(() => pair.remove());
  const server = await startPostgres();
  if (typeof server === "string") {
    return server;
  }
  t.teardown(() => server.remove());
  const others = await Promise.all(Array.from({ length: count - 1 }, () => server.createDatabase()));
  const urls = [pair.urls.join(","), ...others];
  return {
    engine: "postgresql",
    urlOf: (node) => urls[node]!,
    fileOf: () => {
      throw new Error("PostgreSQL has no file.");
    },
    empty: (node) => server.emptyDatabase(urls[node]!),
    servers: [pair.primary, server],
    pair,
  };
}
