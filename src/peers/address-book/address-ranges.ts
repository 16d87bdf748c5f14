/**
 * Which IP addresses a node calls, and with whose leave. What stands for an IPv4 address (ip-address.ts) is judged by
 * that as well.
 */
import { BlockList, isIPv6 } from "node:net";
import { carriedAddresses, plainAddress } from "./ip-address.js";

/** Whose leave it takes: everybody's word is enough, the operator must have allowed private ones, or nobody can. */
export type Reach = "public" | "private" | "never";

function listOf(...ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [net = "", prefix] = range.split("/");
    list.addSubnet(net, Number(prefix), isIPv6(net) ? "ipv6" : "ipv4");
  }
  return list;
}

/** What no machine has for its own, what leads nowhere, and where clouds tell secrets. */
const never = listOf(
  // Unspecified, link-local (most clouds' metadata among them), multicast, reserved.
  ...["0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4"],
  // For the making of protocols, the relays of 6to4, and documentation.
  ...["192.0.0.0/24", "192.88.99.0/24", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"],
  ...["2001:db8::/32", "3fff::/20"],
  // Metadata in other places.
  ...["100.100.100.200/32", "168.63.129.16/32"],
  ...["fd00:ec2::254/128", "fd20:ce::254/128", "fd00:c1::a9fe:a9fe/128"],
);

/** Loopback, private, shared, benchmarking, and IPv6 ranges for protocols and for what carries IPv4. */
const privates = listOf(
  ...["127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "198.18.0.0/15"],
  ...["::1/128", "fc00::/7", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/23"],
);

/** All that is given to anybody; of the rest of IPv6 nothing is called that is not private. */
const globalIpv6 = listOf("2000::/3");

/** How far a node goes for an address. */
export function reachOf(address: string): Reach {
  const ip = plainAddress(address);
  const all = [ip, ...carriedAddresses(ip)].map(reachOfOne);
  return (["never", "private"] as const).find((reach) => all.includes(reach)) ?? "public";
}

function reachOfOne(ip: string): Reach {
  const family = isIPv6(ip) ? "ipv6" : "ipv4";
  if (never.check(ip, family)) {
    return "never";
  }
  if (privates.check(ip, family)) {
    return "private";
  }
  return family === "ipv4" || globalIpv6.check(ip, family) ? "public" : "never";
}
