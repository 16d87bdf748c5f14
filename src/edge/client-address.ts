/**
 * Sets of addresses, and the address of the client. It is the address of the socket, unless that is a trusted proxy.
 * Then X-Forwarded-For, or without it Forwarded, is read from right to left, past every trusted proxy, to the first
 * other address. Entries further left come from the client and are not trusted.
 */
import { BlockList, isIP, isIPv4 } from "node:net";
import { createLruCache } from "../base/caches/lru-cache.js";
import { normalizeAddress } from "../base/ip-address.js";
import type { RequestHeader } from "../rpc/gate.js";

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

/**
 * Returns the client's address.
 *
 * @param remoteAddress address of the socket.
 * @param header returns a request header by lowercase name.
 */
export function findClientAddress(
  remoteAddress: string,
  header: (name: RequestHeader) => string | undefined,
  isTrustedProxy: AddressSet,
): string {
  let address = normalizeAddress(remoteAddress);
  if (!isTrustedProxy(address)) {
    return address;
  }
  // Most proxies set X-Forwarded-For only, and pass on a Forwarded header, which the client may have written.
  const hops = header("x-forwarded-for")?.split(",") ?? forwardedFor(header("forwarded")) ?? [];
  for (const hop of hops.reverse()) {
    const claimed = addressOf(hop);
    if (claimed === undefined) {
      break;
    }
    address = claimed;
    if (!isTrustedProxy(address)) {
      break;
    }
  }
  return address;
}

/** Returns the `for` values of a Forwarded header (RFC 7239), left to right; undefined without the header. */
function forwardedFor(header: string | undefined): string[] | undefined {
  return header?.split(",").map((element) => /(?:^|;)\s*for=("[^"]*"|[^;\s]*)/i.exec(element)?.[1] ?? "");
}

/**
 * Parses an address from `1.2.3.4`, `1.2.3.4:80`, `[::1]:80`, `"[::1]"` or `::1`; returns undefined if there is none.
 */
function addressOf(hop: string): string | undefined {
  const text = hop.trim().replace(/^"(.*)"$/, "$1");
  const bare = /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text)?.[1] ?? text;
  return isIP(bare) === 0 ? undefined : normalizeAddress(bare);
}
