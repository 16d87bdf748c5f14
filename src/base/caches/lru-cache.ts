import { LRUCache } from "lru-cache";

/**
 * A cache of what was used last, which takes memory for what is in it: with `max` alone LRUCache takes that of a full one
 * at once.
 *
 * @param maxEntries most entries; the one that was not used for the longest time makes room.
 * @param ttlMs how long an entry lives; as long as there is room when left out.
 */
export function createLruCache<Value extends object | boolean | number | bigint | string>(
  maxEntries: number,
  ttlMs = 0,
): LRUCache<string, Value> {
  return new LRUCache({ maxSize: maxEntries, sizeCalculation: () => 1, ttl: ttlMs });
}
