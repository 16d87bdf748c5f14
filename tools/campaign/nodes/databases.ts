/** Databases of the nodes: SQLite files, or PostgreSQL servers that can be killed. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { type PostgresPair, startPostgresPair } from "../../../test/helpers/databases/postgres-pair.js";
import {
  type EndedServer,
  type PostgresServer,
  startPostgres,
} from "../../../test/helpers/databases/postgres-server.js";
import type { Teardown } from "../../../test/helpers/nodes/teardown.js";
import type { CampaignEngine } from "../settings.js";

export interface Databases {
  readonly engine: CampaignEngine;
  /** Returns the value of `--database` for a node. */
  urlOf(node: number): string;
  /** Returns the path of the file; throws an Error with PostgreSQL. */
  fileOf(node: number): string;
  /** Deletes all content. The node must not be running. */
  empty(node: number): Promise<void>;
  /** PostgreSQL servers by node, so that a fault of one node never reaches another one. Empty with SQLite. */
  readonly servers: readonly EndedServer[];
  /** Primary and standby of the authority, with PostgreSQL. */
  readonly pair?: PostgresPair;
}

/** Returns SQLite databases in the data directories. */
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
 * Starts a primary and a standby for the authority, and a server for each follower.
 *
 * @returns the reason if they cannot be started.
 */
export async function postgresDatabases(t: Teardown, count: number): Promise<Databases | string> {
  const pair = await startPostgresPair();
  if (typeof pair === "string") {
    return pair;
  }
  t.teardown(() => pair.remove());
  const followers: PostgresServer[] = [];
  while (followers.length < count - 1) {
    const server = await startPostgres();
    if (typeof server === "string") {
      return server;
    }
    t.teardown(() => server.remove());
    followers.push(server);
  }
  const urls = [pair.urls.join(","), ...(await Promise.all(followers.map((server) => server.createDatabase())))];
  return {
    engine: "postgresql",
    urlOf: (node) => urls[node]!,
    fileOf: () => {
      throw new Error("PostgreSQL has no file.");
    },
    empty: (node) => followers[node - 1]!.emptyDatabase(urls[node]!),
    servers: [pair.primary, ...followers],
    pair,
  };
}

/** Removes the files of a database and of its mempool. */
async function removeSqlite(file: string): Promise<void> {
  const parts = [file, `${file}-mempool`];
  const all = parts.flatMap((part) => [part, `${part}-wal`, `${part}-shm`, `${part}-journal`]);
  await Promise.all(all.map((path) => rm(path, { force: true })));
}
