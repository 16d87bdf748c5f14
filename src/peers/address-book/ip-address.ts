/** IP addresses as numbers: which IPv4 addresses stand in an IPv6 address, and who has an address together. */
import { isIPv6 } from "node:net";

/** The eight groups of an IPv6 address, as it is usually written, without a zone. */
function groupsOf(ip: string): number[] {
  const [left = [], right] = ip.split("::").map((side) => side.split(":").flatMap(groupsOfPart));
  const missing = right === undefined ? 0 : 8 - left.length - right.length;
  return [...left, ...Array.from({ length: missing }, () => 0), ...(right ?? [])];
}

/** One group, or the two that an IPv4 address at the end stands for. */
function groupsOfPart(text: string): number[] {
  if (text === "") {
    return [];
  }
  const bytes = text.split(".").map(Number);
  return bytes.length === 4 ? [bytes[0]! * 256 + bytes[1]!, bytes[2]! * 256 + bytes[3]!] : [parseInt(text, 16)];
}

/** Two groups as an IPv4 address. */
function toIpv4(high: number, low: number): string {
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join(".");
}

/** An address in one form: without a zone, and IPv4 where it is IPv4 in IPv6 (::ffff:0:0/96). */
export function plainAddress(address: string): string {
  const ip = address.replace(/%.*$/, "");
  if (!isIPv6(ip)) {
    return ip;
  }
  const groups = groupsOf(ip);
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  return isMapped ? toIpv4(groups[6]!, groups[7]!) : ip;
}

/** IPv4 addresses at which something may arrive that is sent to an IPv6 address: where it stands for them. */
export function carriedAddresses(ip: string): string[] {
  if (!isIPv6(ip)) {
    return [];
  }
  const g = groupsOf(ip);
  const last = toIpv4(g[6]!, g[7]!);
  const carried: string[] = [];
  if (g[0] === 0x64 && g[1] === 0xff9b) {
    carried.push(...translated(g));
  }
  // 6to4.
  if (g[0] === 0x2002) {
    carried.push(toIpv4(g[1]!, g[2]!));
  }
  // Teredo: its server, and its client with all bits turned.
  if (g[0] === 0x2001 && g[1] === 0) {
    carried.push(toIpv4(g[2]!, g[3]!), toIpv4(g[6]! ^ 0xffff, g[7]! ^ 0xffff));
  }
  // ISATAP, in any network.
  if ((g[4]! & 0xfdff) === 0 && g[5] === 0x5efe) {
    carried.push(last);
  }
  return carried;
}

/**
 * NAT64: 64:ff9b::/96, and prefixes of a site's own in 64:ff9b:1::/48 of 48, 56, 64 and 96 bits, between which eight bits
 * of zero stand in the address (RFC 6052, 2.2). Which of these a site has nobody can see; what begins with a zero is the
 * suffix of another one.
 */
function translated(g: readonly number[]): string[] {
  const last = toIpv4(g[6]!, g[7]!);
  if (g[2] !== 1) {
    return [last];
  }
  return [
    last,
    toIpv4(g[3]!, ((g[4]! & 0xff) << 8) | (g[5]! >> 8)),
    toIpv4(((g[3]! & 0xff) << 8) | (g[4]! & 0xff), g[5]!),
    toIpv4(((g[4]! & 0xff) << 8) | (g[5]! >> 8), ((g[5]! & 0xff) << 8) | (g[6]! >> 8)),
  ].filter((ip) => !ip.startsWith("0."));
}

/** What belongs to one who has an address: an IPv4 address itself, of IPv6 the /64, as a key. */
export function dialPrefixOf(address: string): string {
  const ip = plainAddress(address);
  return isIPv6(ip) ? groupsOf(ip).slice(0, 4).join(":") : ip;
}
