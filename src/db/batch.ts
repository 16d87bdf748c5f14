/**
 * Joins reads that would wait for each other: the first goes to the database at once, and those that arrive while it is
 * under way go together, as one query. What a query costs beside its rows is paid once for all of them.
 */

import type { Database, Engine } from "./connect.js";

/** Reads the rows of keys; the answers stand in the order of the keys, undefined where there is none. */
type FindMany<Key, Found> = (keys: readonly Key[]) => Promise<readonly (Found | undefined)[]>;

interface Waiting<Key, Found> {
  readonly key: Key;
  readonly resolve: (found: Found | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/** A read of one key. Never more than `maxKeys` are in one query, so that the rows of one do not fill the memory. */
function batch<Key, Found>(findMany: FindMany<Key, Found>, maxKeys: number): (key: Key) => Promise<Found | undefined> {
  let waiting: Waiting<Key, Found>[] = [];
  let isUnderWay = false;

  async function run(): Promise<void> {
    isUnderWay = true;
    while (waiting.length > 0) {
      const joined = waiting.slice(0, maxKeys);
      waiting = waiting.slice(maxKeys);
      try {
        const found = await findMany(joined.map(({ key }) => key));
        joined.forEach(({ resolve }, i) => resolve(found[i]));
      } catch (error) {
        joined.forEach(({ reject }) => reject(error));
      }
    }
    isUnderWay = false;
  }

  return (key) =>
    new Promise((resolve, reject) => {
      waiting.push({ key, resolve, reject });
      if (!isUnderWay) {
        void run();
      }
    });
}

/** A list that is handed over as one JSON text, as a table `k`; each engine has its own words for it. */
export interface ListTable {
  /** What stands in FROM, with a question mark for the text. */
  readonly table: string;
  /** Position in the list, from 0. */
  readonly slot: string;
  /** An item that is a string. The parts of one that is a list are `k.value ->> 0` and so on, with every engine. */
  readonly text: string;
}

/** The words, by engine. */
export const listTables: Readonly<Record<Engine, ListTable>> = {
  sqlite: { table: "json_each(?) AS k", slot: "k.key", text: "k.value" },
  postgresql: {
    table: "json_array_elements(CAST(? AS json)) WITH ORDINALITY AS k(value, key)",
    slot: "k.key - 1",
    text: "k.value #>> '{}'",
  },
};

/** Most keys of one query: each row may hold a document of 1 MiB. */
const maxKeys = 16;

/**
 * A query of at most one row for each key, prepared and batched.
 *
 * @param sql makes its text: it joins the table of the keys, and gives their slot as `slot`.
 */
export function prepareBatch<Row extends { readonly slot: number }>(
  { engine, prepare }: Pick<Database, "engine" | "prepare">,
  sql: (keys: ListTable) => string,
): (key: readonly string[]) => Promise<Row | undefined> {
  const query = prepare<Row>(sql(listTables[engine]));
  return batch(async (keys) => {
    const found = new Array<Row | undefined>(keys.length);
    for (const row of await query(JSON.stringify(keys))) {
      found[row.slot] = row;
    }
    return found;
  }, maxKeys);
}
