import { LRUCache } from "lru-cache";

/**
 * Creates an LRU cache that allocates memory as entries arrive. With `max` alone, LRUCache allocates for a full cache
 * at once.
 *
 * @param maxEntries limit on entries; the least recently used entry is evicted first.
 * @param ttlMs time to live of an entry in milliseconds; 0 disables expiry.
 */
export function createLruCache<Value extends object | boolean | number | bigint | string>(
  maxEntries: number,
  ttlMs = 0,
): LRUCache<string, Value> {
  return new LRUCache({ maxSize: maxEntries, sizeCalculation: () => 1, ttl: ttlMs });
}
