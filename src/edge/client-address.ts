/**
 * Whose address a request comes from. The socket's, unless the socket is a trusted proxy: then the forwarding headers
 * are walked from right to left, past every trusted proxy, to the first address that is none. What stands further left
 * was written by the caller and is believed by nobody.
 */
import { isIP } from "node:net";
import { type AddressSet, normalizeAddress } from "./cidr.js";

/** Remote address of the socket and request headers to the client's address. */
export type ClientAddress = (remoteAddress: string, header: (name: string) => string | undefined) => string;

/** Resolves addresses behind the given proxies. */
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

/** The `for` values of a Forwarded header (RFC 7239), left to right; undefined without such a header. */
function forwardedFor(header: string | undefined): string[] | undefined {
  return header?.split(",").map((element) => /(?:^|;)\s*for=("[^"]*"|[^;\s]*)/i.exec(element)?.[1] ?? "");
}

/** The address in `1.2.3.4`, `1.2.3.4:80`, `[::1]:80`, `"[::1]"` or `::1`; undefined when there is none. */
function addressOf(hop: string): string | undefined {
  const text = hop.trim().replace(/^"(.*)"$/, "$1");
  const bare = /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text)?.[1] ?? text;
  return isIP(bare) === 0 ? undefined : normalizeAddress(bare);
}
