/** Databases of a PostgreSQL server. */
import { randomBytes } from "node:crypto";
import pg from "pg";

/** Makes databases for tests, which see nothing of each other. */
export interface PostgresDatabases {
  /** Creates an empty database and returns its URL. It takes the server a quarter of a second. */
  createDatabase(): Promise<string>;
  /**
   * Creates an empty schema and returns its URL. All of them are in one database: for those who only see their tables.
   */
  createSchema(): Promise<string>;
  /** Empties a database that nobody uses. */
  emptyDatabase(url: string): Promise<void>;
  /** Removes a database, and ends the connections to it. */
  dropDatabase(url: string): Promise<void>;
}

/** Returns what makes databases on a server, by the URL of a database that it has. */
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
  // An extension is its database's, whichever schema asked for it first.
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
