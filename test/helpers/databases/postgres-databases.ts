/** Databases of a PostgreSQL server. */
import { randomBytes } from "node:crypto";
import pg from "pg";

/** Creates separate databases for tests. */
export interface PostgresDatabases {
  /** Creates an empty database and returns its URL, in about 0.25 s. */
  createDatabase(): Promise<string>;
  /**
   * Creates an empty schema in a shared database, and returns its URL. For tests that use only their own tables.
   */
  createSchema(): Promise<string>;
  /** Empties an unused database. */
  emptyDatabase(url: string): Promise<void>;
  /** Removes a database, and ends the connections to it. */
  dropDatabase(url: string): Promise<void>;
}

/** Returns functions that create databases on a server. The URL names an existing database of it. */
export function createPostgresDatabases(server: string): PostgresDatabases {
  const nameOf = (url: string): string => new URL(url).pathname.slice(1);
  const newName = (): string => `test_${randomBytes(6).toString("hex")}`;
  let shared: Promise<string> | undefined;

  const createDatabase = async (): Promise<string> => {
    const url = new URL(server);
    url.pathname = newName();
    await query(server, `CREATE DATABASE ${nameOf(url.href)}`);
    return url.href;
  };
  // An extension belongs to the database, not to a schema.
  const createShared = async (): Promise<string> => {
    const url = await createDatabase();
    await query(url, "CREATE EXTENSION pg_trgm");
    return url;
  };
  return {
    createDatabase,
    async createSchema() {
      const [url, name] = [await (shared ??= createShared()), newName()];
      await query(url, `CREATE SCHEMA ${name}`);
      return `${url}?options=${encodeURIComponent(`-c search_path=${name},public`)}`;
    },
    async emptyDatabase(url) {
      await query(server, `DROP DATABASE ${nameOf(url)} WITH (FORCE)`);
      await query(server, `CREATE DATABASE ${nameOf(url)}`);
    },
    dropDatabase: (url) => query(server, `DROP DATABASE ${nameOf(url)} WITH (FORCE)`),
  };
}

async function query(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
