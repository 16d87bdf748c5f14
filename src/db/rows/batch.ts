/**
 * Joins queries that would wait for each other: those that arrive in one turn of the event loop, or while one is under way,
 * go together, as one query. What a query costs beside its rows, most of it the waking of a thread, is paid once for all of
 * them.
 */

import { yieldToEventLoop } from "../../base/async/yielding.js";
import type { Lane, Queries } from "../queries/database.js";
import type { ListTable } from "../queries/dialects.js";

/** Reads the rows of keys; the answers stand in the order of the keys, undefined where there is none. */
type FindMany<Key, Found> = (keys: readonly Key[]) => Promise<readonly (Found | undefined)[]>;

interface Waiting<Key, Found> {
  readonly key: Key;
  readonly resolve: (found: Found | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/** A read of one key, or a write of one row. Never more than `maxKeys` are in one query, so that the rows of one do not fill the memory. */
export function batch<Key, Found>(
  findMany: FindMany<Key, Found>,
  maxKeys: number,
): (key: Key) => Promise<Found | undefined> {
  let waiting: Waiting<Key, Found>[] = [];
  let isUnderWay = false;

  async function run(): Promise<void> {
    isUnderWay = true;
    await yieldToEventLoop();
    while (waiting.length > 0) {
      const joined = waiting.slice(0, maxKeys);
      waiting = waiting.slice(maxKeys);
      try {
        const found = await findMany(joined.map(({ key }) => key));
        joined.forEach(({ resolve }, i) => resolve(found[i]));
      } catch (error) {
        joined.forEach(({ reject }) => reject(error));
      }
      if (waiting.length < maxKeys) {
        await yieldToEventLoop();
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

/** How the keys of a query are joined. */
export interface BatchOptions {
  readonly lane?: Lane | undefined;
  /** Most keys of one query; 32 when left out. */
  readonly maxKeys?: number;
}

/**
 * A query of at most one row for each key, prepared and batched.
 *
 * @param text makes its text: it joins the table of the keys, and gives their slot as `slot`.
 */
export function prepareBatch<Row extends { readonly slot: number }>(
  { dialect, prepare }: Queries,
  text: (keys: ListTable) => string,
  { lane, maxKeys = 32 }: BatchOptions = {},
): (key: readonly string[]) => Promise<Row | undefined> {
  const query = prepare<Row>(text(dialect.list), lane);
  return batch(async (keys) => {
    const found = new Array<Row | undefined>(keys.length);
    for (const row of await query(JSON.stringify(keys))) {
      found[row.slot] = row;
    }
    return found;
  }, maxKeys);
}
