/** Caches results of database reads in memory. The code that changes the database invalidates them. */
import { isImmutable, makeImmutable } from "./immutable.js";
import { createLruCache } from "./lru-cache.js";

/** Limit on remembered keys for each cache. */
const maxHistory = 20_000;

/** Admission policy of every cache in front of the database: a key is stored from its second read on. */
export class AdmissionPolicy {
  /** Keys read before. Those read only once are not cached, because they would evict keys that are read often. */
  private readonly history = createLruCache<boolean>(maxHistory);
  private readonly inFlight = new Map<string, { readonly generation: number; readonly result: Promise<unknown> }>();
  private generation = 0;

  /**
   * Runs a read, and passes the value to `store` if the key was read before and nothing changed meanwhile. A missing
   * value is never stored. Concurrent reads of the same key and description share one result, unless a change was
   * reported since that read started.
   *
   * @param store stores the value, and returns the value as stored, which the reads in flight return as well.
   * @param description separates several kinds of values that are read by the same key.
   */
  async find<Value>(
    key: string,
    find: () => Promise<Value>,
    store: (value: NonNullable<Value>) => Value,
    description = "",
  ): Promise<Value> {
    const name = `${description} ${key}`;
    const { generation } = this;
    const sharedRead = this.inFlight.get(name);
    if (sharedRead?.generation === generation) {
      this.wasReadBefore(key);
      return (await sharedRead.result) as Value;
    }
    const result = find().then((value) => {
      const mayStore =
        value !== undefined && value !== null && this.wasReadBefore(key) && this.generation === generation;
      return mayStore ? store(value) : value;
    });
    const thisRead = { generation, result };
    this.inFlight.set(name, thisRead);
    try {
      return await result;
    } finally {
      if (this.inFlight.get(name) === thisRead) {
        this.inFlight.delete(name);
      }
    }
  }

  private wasReadBefore(key: string): boolean {
    const isKnown = this.history.has(key);
    this.history.set(key, true);
    return isKnown;
  }

  /** Reports a change: results of reads in flight are not stored. */
  changed(): void {
    this.generation++;
  }
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
