/**
 * Finds the address of the client. It is the address of the socket, unless that is a trusted proxy. Then the forwarding
 * headers are read from right to left, past every trusted proxy, to the first other address. Entries further left come
 * from the client and are not trusted.
 */
import { isIP } from "node:net";
import { normalizeAddress } from "../base/ip-address.js";
import type { AddressSet } from "./cidr.js";

/** Returns the client's address from the remote address of the socket and the request headers. */
export type ClientAddress = (remoteAddress: string, header: (name: string) => string | undefined) => string;

/** Creates a resolver of client addresses behind the given proxies. */
export function createClientAddress(isTrustedProxy: AddressSet): ClientAddress {
  return (remoteAddress, header) => {
    let address = normalizeAddress(remoteAddress);
    if (!isTrustedProxy(address)) {
      return address;
    }
    const hops = forwardedFor(header("forwarded")) ?? header("x-forwarded-for")?.split(",") ?? [];
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
  };
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
