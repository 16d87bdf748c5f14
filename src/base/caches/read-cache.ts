/** Caches results of database reads in memory. The code that changes the database invalidates them. */
import { isImmutable, makeImmutable } from "./immutable.js";
import { createLruCache } from "./lru-cache.js";

export interface ReadCache<Found extends object> {
  /** Returns the cached value, or a promise of the value that is read from the database. */
  read(key: string): Found | Promise<Found>;
  /** Removes one key, or every key if none is given. Call it once the change is in the database. */
  forget(key?: string): void;
}

/** Number of keys in one generation of the read history. The history stores the current and the previous generation. */
const rememberedReads = 20_000;

/**
 * Creates a function that returns true if the key was read before, and records the read otherwise. Keys that are read
 * only once are not cached, because they would evict keys that are read often.
 */
function createMemoryOfReads(): (key: string) => boolean {
  let recent = new Set<string>();
  let older = new Set<string>();
  return (key) => {
    if (recent.has(key) || older.has(key)) {
      return true;
    }
    recent.add(key);
    if (recent.size >= rememberedReads) {
      [older, recent] = [recent, new Set()];
    }
    return false;
  };
}

/** Admission policy of a cache: decides if a read is stored. */
export interface AdmissionPolicy {
  /**
   * Runs a read, and passes the value to `keep` if the key was read before and nothing changed meanwhile. A missing
   * value is never stored. Concurrent reads of the same name share one result, unless `changed()` was called since that
   * read started.
   *
   * @param description separates several kinds of values that are read by the same key.
   */
  find<Found>(
    key: string,
    find: () => Promise<Found>,
    store: (found: NonNullable<Found>) => void,
    description?: string,
  ): Promise<Found>;
  /** Reports a change: results of reads in flight are not stored. */
  changed(): void;
}

/** Creates the admission policy of every cache in front of the database: a key is stored from its second read on. */
export function createAdmissionPolicy(): AdmissionPolicy {
  const isReadAgain = createMemoryOfReads();
  /** Reads in flight by name. */
  const flights = new Map<string, { readonly generation: number; readonly result: Promise<unknown> }>();
  let generation = 0;
  return {
    async find<Found>(
      key: string,
      find: () => Promise<Found>,
      store: (found: NonNullable<Found>) => void,
      description = "",
    ): Promise<Found> {
      const name = `${description} ${key}`;
      const flight = flights.get(name);
      if (flight?.generation === generation) {
        isReadAgain(key);
        return (await flight.result) as Found;
      }
      const before = generation;
      const result = find().then((found) => {
        if (found !== undefined && found !== null && isReadAgain(key) && generation === before) {
          store(found);
        }
        return found;
      });
      const own = { generation, result };
      flights.set(name, own);
      try {
        return await result;
      } finally {
        if (flights.get(name) === own) {
          flights.delete(name);
        }
      }
    },
    changed() {
      generation++;
    },
  };
}

/** Creates a cache of up to `max` keys. Values are stored from the second read on, and are made immutable. */
export function createReadCache<Found extends object>(
  find: (key: string) => Promise<Found>,
  max: number,
): ReadCache<Found> {
  const cache = createLruCache<Found>(max);
  const admission = createAdmissionPolicy();
  return {
    read: (key) =>
      cache.get(key) ??
      admission.find(
        key,
        () => find(key),
        (found) => cache.set(key, makeImmutable(found)),
      ),
    forget(key) {
      admission.changed();
      if (key === undefined) {
        cache.clear();
      } else {
        cache.delete(key);
      }
    },
  };
}

/**
 * Memoizes a function that builds responses from values. Only responses of immutable values are cached, since a cache
 * returns those as the same object again. The cached response is made immutable too, so that its encoding can be
 * cached.
 */
export function memoize<Value extends object, Result extends object>(
  create: (value: Value) => Result,
): (value: Value) => Result {
  const results = new WeakMap<Value, Result>();
  return (value) => {
    let result = results.get(value);
    if (result === undefined) {
      result = create(value);
      if (isImmutable(value)) {
        results.set(value, makeImmutable(result));
      }
    }
    return result;
  };
}
