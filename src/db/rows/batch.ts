/**
 * Batches queries. Calls that arrive in one tick of the event loop, or while a query is in flight, are sent as one
 * query. They share the fixed cost of a query, most of which is waking a thread.
 */

import { setImmediate as nextTick } from "node:timers/promises";
import type { QueryQueue, Queries } from "../queries/database.js";
import type { ListTable } from "../queries/dialects.js";

/** Reads the rows of keys. Returns them in the order of the keys, with undefined for a missing row. */
type FindMany<Key, Found> = (keys: readonly Key[]) => Promise<readonly (Found | undefined)[]>;

interface Waiting<Key, Found> {
  readonly key: Key;
  readonly resolve: (found: Found | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Batches a read of one key, or a write of one row. Sends at most `maxKeys` keys in one query, to limit the memory of
 * its rows.
 */
export function batch<Key, Found>(
  findMany: FindMany<Key, Found>,
  maxKeys = 32,
): (key: Key) => Promise<Found | undefined> {
  let waiting: Waiting<Key, Found>[] = [];
  let isRunning = false;

  async function sendAll(): Promise<void> {
    isRunning = true;
    await nextTick();
    while (waiting.length > 0) {
      const sent = waiting.slice(0, maxKeys);
      waiting = waiting.slice(maxKeys);
      try {
        const found = await findMany(sent.map(({ key }) => key));
        sent.forEach(({ resolve }, i) => resolve(found[i]));
      } catch (error) {
        sent.forEach(({ reject }) => reject(error));
      }
      if (waiting.length < maxKeys) {
        await nextTick();
      }
    }
    isRunning = false;
  }

  return (key) =>
    new Promise((resolve, reject) => {
      waiting.push({ key, resolve, reject });
      if (!isRunning) {
        void sendAll();
      }
    });
}

export interface BatchOptions {
  readonly queue?: QueryQueue | undefined;
  /** Limit on keys in one query. */
  readonly maxKeys?: number | undefined;
}

/**
 * Prepares a batched query that returns at most one row per key.
 *
 * @param text returns the SQL: it joins the table of the keys, and selects their position as `slot`.
 */
export function prepareBatch<Row extends { readonly slot: number }>(
  { dialect, prepare }: Queries,
  text: (keys: ListTable) => string,
  { queue, maxKeys }: BatchOptions = {},
): (key: readonly string[]) => Promise<Row | undefined> {
  const query = prepare<Row>(text(dialect.list), queue);
  return batch(async (keys) => {
    const found = new Array<Row | undefined>(keys.length);
    for (const row of await query(JSON.stringify(keys))) {
      found[row.slot] = row;
    }
    return found;
  }, maxKeys);
}
