/** Databases of the nodes: SQLite files, or PostgreSQL servers that can be killed. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { type PostgresPair, startPostgresPair } from "../../../test/helpers/databases/postgres-pair.js";
import { type EndedServer, startPostgres } from "../../../test/helpers/databases/postgres-server.js";
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
  /** Returns the PostgreSQL server of a node, which the followers share. Undefined with SQLite. */
  serverOf(node: number): CampaignServer | undefined;
  /** Primary and standby of the authority, with PostgreSQL. */
  readonly pair?: PostgresPair;
}

/** Server that remembers its last outage. */
export interface CampaignServer extends EndedServer {
  /** Returns true if the server was down at `time`, in milliseconds since 1970, or later. */
  wasDownSince(time: number): boolean;
}

/** Returns SQLite databases in the data directories. */
export function sqliteDatabases(homes: readonly string[]): Databases {
  const fileOf = (node: number): string => join(homes[node]!, "gatehouse.sqlite");
  return {
    engine: "sqlite",
    urlOf: (node) => `sqlite:${fileOf(node)}`,
    fileOf,
    empty: (node) => removeSqlite(fileOf(node)),
    serverOf: () => undefined,
  };
}

/**
 * Starts a primary and a standby for the authority, and a server for the followers.
 *
 * @returns the reason if they cannot be started.
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
  const servers = [recordOutages(pair.primary), recordOutages(server)];
  return {
    engine: "postgresql",
    urlOf: (node) => urls[node]!,
    fileOf: () => {
      throw new Error("PostgreSQL has no file.");
    },
    empty: (node) => server.emptyDatabase(urls[node]!),
    serverOf: (node) => servers[Math.min(node, 1)],
    pair,
  };
}

function recordOutages(server: EndedServer): CampaignServer {
  let lastDownMs = -Infinity;
  return {
    async start() {
      await server.start();
      lastDownMs = Date.now();
    },
    async stop() {
      lastDownMs = Infinity;
      await server.stop();
    },
    async crash(signal) {
      lastDownMs = Infinity;
      await server.crash(signal);
    },
    wasDownSince: (time) => lastDownMs >= time,
  };
}

/** Removes the files of a database and of its mempool. */
async function removeSqlite(file: string): Promise<void> {
  const parts = [file, `${file}-mempool`];
  const all = parts.flatMap((part) => [part, `${part}-wal`, `${part}-shm`, `${part}-journal`]);
  await Promise.all(all.map((path) => rm(path, { force: true })));
}
