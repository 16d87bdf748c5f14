/**
 * Parses IP addresses: finds the IPv4 addresses that an IPv6 address embeds, and the prefix that belongs to one host or
 * site.
 */
import { isIPv6 } from "node:net";

/** Parses an IPv6 address without a zone into its eight groups. */
function groupsOf(ip: string): number[] {
  const [left = "", right] = ip.split("::", 2);
  const groups = parseGroups(left);
  if (right !== undefined) {
    const last = parseGroups(right);
    while (groups.length + last.length < 8) {
      groups.push(0);
    }
    groups.push(...last);
  }
  return groups;
}

/** Parses groups between colons. An IPv4 address at the end is two groups. */
function parseGroups(text: string): number[] {
  const groups: number[] = [];
  for (const part of text === "" ? [] : text.split(":")) {
    if (part.includes(".")) {
      const [a, b, c, d] = part.split(".").map(Number) as [number, number, number, number];
      groups.push(a * 256 + b, c * 256 + d);
    } else {
      groups.push(parseInt(part, 16));
    }
  }
  return groups;
}

function toIpv4(high: number, low: number): string {
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join(".");
}

/** Returns the IPv4 address that the groups of an IPv4-mapped address (::ffff:0:0/96) contain. */
function mappedIpv4(groups: readonly number[]): string | undefined {
  const isMapped = groups[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0);
  return isMapped ? toIpv4(groups[6]!, groups[7]!) : undefined;
}

const withoutZone = (address: string): string => (address.includes("%") ? address.replace(/%.*$/, "") : address);

/** Normalizes an address: removes the zone, and converts IPv4-mapped addresses to IPv4. */
export function normalizeAddress(address: string): string {
  if (!address.includes(":")) {
    return address;
  }
  const ip = withoutZone(address);
  return (isIPv6(ip) ? mappedIpv4(groupsOf(ip)) : undefined) ?? ip;
}

/** Returns the prefix that one host or site controls: the IPv4 address, or the /64 of an IPv6 address. */
export function addressPrefixOf(address: string): string {
  if (!address.includes(":")) {
    return address;
  }
  const ip = withoutZone(address);
  if (!isIPv6(ip)) {
    return ip;
  }
  const groups = groupsOf(ip);
  const hex = (i: number): string => groups[i]!.toString(16);
  return mappedIpv4(groups) ?? `${hex(0)}:${hex(1)}:${hex(2)}:${hex(3)}::/64`;
}

/** Returns the IPv4 addresses that packets to an IPv6 address may reach, because the address embeds them. */
export function embeddedAddresses(ip: string): string[] {
  if (!isIPv6(ip)) {
    return [];
  }
  const g = groupsOf(ip);
  const last = toIpv4(g[6]!, g[7]!);
  const embedded: string[] = [];
  if (g[0] === 0x64 && g[1] === 0xff9b) {
    embedded.push(...nat64Addresses(g));
  }
  // 6to4 (2002::/16).
  if (g[0] === 0x2002) {
    embedded.push(toIpv4(g[1]!, g[2]!));
  }
  // Teredo (2001::/32): the server, and the client with all bits inverted.
  if (g[0] === 0x2001 && g[1] === 0) {
    embedded.push(toIpv4(g[2]!, g[3]!), toIpv4(g[6]! ^ 0xffff, g[7]! ^ 0xffff));
  }
  // ISATAP, with any prefix.
  if ((g[4]! & 0xfdff) === 0 && g[5] === 0x5efe) {
    embedded.push(last);
  }
  return embedded;
}

/**
 * Returns the IPv4 addresses that a NAT64 address may embed: in 64:ff9b::/96, or in a prefix of a site within
 * 64:ff9b:1::/48 of 48, 56, 64 or 96 bits. RFC 6052, section 2.2, puts eight zero bits between the parts. The length of
 * the site's prefix is unknown, so all are tried. A result that starts with 0 is the suffix of another form.
 */
function nat64Addresses(g: readonly number[]): string[] {
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
