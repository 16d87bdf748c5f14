import { BlockList, isIP, isIPv4 } from "node:net";
import { createLruCache } from "../base/caches/lru-cache.js";

/** Limit on addresses with a cached result per set. */
const maxCachedAddresses = 10_000;

/** Returns true if the address is in one of the ranges. */
export type AddressSet = (address: string) => boolean;

/**
 * Creates a set of addresses from CIDR ranges (`10.0.0.0/8`, `::1/128`) and single addresses.
 *
 * @throws Error that names the invalid range.
 */
export function createAddressSet(ranges: readonly string[]): AddressSet {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = "", prefix, ...rest] = range.split("/");
    const family = isIPv4(address) ? "ipv4" : "ipv6";
    const maxBits = family === "ipv4" ? 32 : 128;
    const isPrefix = prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= maxBits);
    if (isIP(address) === 0 || !isPrefix || rest.length > 0) {
      throw new Error(`"${range}" is not an address range, such as 10.0.0.0/8.`);
    }
    list.addSubnet(address, prefix === undefined ? maxBits : Number(prefix), family);
  }
  if (ranges.length === 0) {
    return () => false;
  }
  // A lookup takes microseconds and every request needs one, so cache the results.
  const cachedResults = createLruCache<boolean>(maxCachedAddresses);
  return (address) => {
    let isContained = cachedResults.get(address);
    if (isContained === undefined) {
      const family = isIP(address);
      isContained = family !== 0 && list.check(address, family === 4 ? "ipv4" : "ipv6");
      cachedResults.set(address, isContained);
    }
    return isContained;
  };
}
