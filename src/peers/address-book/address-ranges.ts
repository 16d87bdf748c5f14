/**
 * Classifies IP addresses by permission to call them. An address that embeds IPv4 addresses (ip-address.ts) is
 * classified by these as well.
 */
import { BlockList, isIPv6 } from "node:net";
import { embeddedAddresses, normalizeAddress } from "../../base/ip-address.js";

/**
 * Permission to call an address: `public` is always permitted, `private` only if the operator allows it, `never` is
 * always rejected.
 */
export type AddressClass = "public" | "private" | "never";

function listOf(...ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [net = "", prefix] = range.split("/");
    list.addSubnet(net, Number(prefix), isIPv6(net) ? "ipv6" : "ipv4");
  }
  return list;
}

/** Ranges that identify no single machine, lead nowhere, or serve secrets of cloud providers. */
const never = listOf(
  // Unspecified, link-local (including most cloud metadata services), multicast and reserved ranges.
  ...["0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4"],
  // Protocol assignments, 6to4 relays, and documentation ranges.
  ...["192.0.0.0/24", "192.88.99.0/24", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"],
  ...["2001:db8::/32", "3fff::/20"],
  // Cloud metadata services at other addresses.
  ...["100.100.100.200/32", "168.63.129.16/32"],
  ...["fd00:ec2::254/128", "fd20:ce::254/128", "fd00:c1::a9fe:a9fe/128"],
);

/** Loopback, private, shared and benchmarking ranges, and IPv6 ranges for protocols and for embedded IPv4. */
const privates = listOf(
  ...["127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "198.18.0.0/15"],
  ...["::1/128", "fc00::/7", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/23"],
);

/** Range of global unicast addresses. Other IPv6 addresses are never called, except private ones. */
const globalIpv6 = listOf("2000::/3");

/** Returns the permission to call an address: the strictest among the address itself and its embedded addresses. */
export function classifyAddress(address: string): AddressClass {
  const ip = normalizeAddress(address);
  const all = [ip, ...embeddedAddresses(ip)].map(classifyOne);
  return (["never", "private"] as const).find((reach) => all.includes(reach)) ?? "public";
}

function classifyOne(ip: string): AddressClass {
  const family = isIPv6(ip) ? "ipv6" : "ipv4";
  if (never.check(ip, family)) {
    return "never";
  }
  if (privates.check(ip, family)) {
    return "private";
  }
  return family === "ipv4" || globalIpv6.check(ip, family) ? "public" : "never";
}
