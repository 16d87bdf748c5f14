/**
 * Endpoints that a node may call because a peer named them. Private ranges require a setting. Ranges that identify no
 * single machine, and addresses at which clouds serve secrets, are always rejected.
 */
import { lookup } from "node:dns/promises";
import { BlockList, isIP, isIPv6 } from "node:net";
import { embeddedAddresses, normalizeAddress } from "../../base/ip-address.js";
import { CallError } from "../../rpc/channel.js";
import { RpcError } from "../../rpc/errors.js";

/** Policy of the node for endpoints. */
export interface EndpointPolicy {
  /** True if endpoints are https://. False for http://, if the network does without TLS. */
  readonly tls: boolean;
  /** True if loopback and private addresses may be called. */
  readonly allowPrivate: boolean;
}

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

/** Limit on the length of a URL that a peer names, in UTF-16 code units. */
const maxLength = 300;

/**
 * Parses and normalizes an endpoint to scheme://host:port in lowercase.
 *
 * @throws RpcError INVALID_REQUEST
 */
export function parseEndpoint(text: string, { tls }: Pick<EndpointPolicy, "tls">): string {
  const scheme = tls ? "https:" : "http:";
  const url = parseWebAddress(text);
  if (url.protocol !== scheme) {
    throw invalidEndpoint(
      text,
      `must start with ${scheme}//, as nodes of this network ${tls ? "use" : "do not use"} TLS`,
    );
  }
  return `${scheme}//${url.hostname}:${portOf(url)}`;
}

/**
 * Parses and normalizes a connection string to scheme://host:port. Nodes never call it.
 *
 * @throws RpcError INVALID_REQUEST
 */
export function parseConnectionString(text: string): string {
  const url = parseWebAddress(text);
  return `${url.protocol}//${url.hostname}:${portOf(url)}`;
}

/**
 * Rejects an endpoint whose host is an IP address or name that peers may not use. Other names are resolved and checked
 * when they are called.
 *
 * @throws RpcError INVALID_REQUEST
 */
export function checkHost(endpoint: string, policy: EndpointPolicy): void {
  const host = hostOf(endpoint);
  const isLocalName = /^(.*\.)?localhost\.?$/.test(host) && !policy.allowPrivate;
  const reason = isIP(host) === 0 ? isLocalName && privateReason : findAddressViolation(host, policy);
  if (reason) {
    throw invalidEndpoint(endpoint, reason);
  }
}

/** Normalizes an endpoint that another node named; undefined if this node would not call it. */
export function callableEndpoint(text: string, policy: EndpointPolicy): string | undefined {
  try {
    const endpoint = parseEndpoint(text, policy);
    checkHost(endpoint, policy);
    return endpoint;
  } catch (error) {
    if (error instanceof RpcError) {
      return undefined;
    }
    throw error;
  }
}

/**
 * Resolves an endpoint to an address that the policy allows. Callers use the address instead of the name, so that a
 * second lookup cannot change the target.
 *
 * @throws RpcError INVALID_REQUEST if the policy forbids every address.
 * @throws CallError if the name cannot be resolved. The name may be valid, so this is only a failed call.
 */
export async function resolveEndpoint(endpoint: string, policy: EndpointPolicy) {
  const host = hostOf(endpoint);
  const port = portOf(new URL(endpoint));
  const ips = isIP(host) === 0 ? await resolveHost(host) : [host];
  const reasons = ips.map((ip) => findAddressViolation(ip, policy));
  const allowed = ips[reasons.indexOf(undefined)];
  if (allowed === undefined) {
    throw invalidEndpoint(endpoint, reasons[0] ?? "has no address");
  }
  return { ip: allowed, port };
}

async function resolveHost(host: string): Promise<string[]> {
  try {
    return (await lookup(host, { all: true })).map(({ address }) => address);
  } catch (error) {
    throw new CallError(
      `The host name cannot be resolved: ${(error as NodeJS.ErrnoException).code ?? "no response"}.`,
      false,
    );
  }
}

function parseWebAddress(text: string): URL {
  const url = text.length <= maxLength && URL.canParse(text) ? new URL(text) : undefined;
  const isPlain =
    url !== undefined &&
    (url.protocol === "https:" || url.protocol === "http:") &&
    url.hostname !== "" &&
    `${url.pathname}${url.search}${url.hash}${url.username}${url.password}` === "/" &&
    portOf(url) > 0;
  if (!isPlain) {
    throw invalidEndpoint(text, "must have the form https://host:port");
  }
  return url;
}

/** Returns the host of an endpoint, without the brackets of IPv6, and with IPv4-mapped addresses as IPv4. */
function hostOf(endpoint: string): string {
  return normalizeAddress(new URL(endpoint).hostname.replace(/^\[|\]$/g, ""));
}

function portOf({ protocol, port }: URL): number {
  return port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);
}

function findAddressViolation(address: string, { allowPrivate }: EndpointPolicy): string | undefined {
  const reach = classifyAddress(address);
  if (reach === "never") {
    return "is an address that nodes never connect to";
  }
  return reach === "private" && !allowPrivate ? privateReason : undefined;
}

const privateReason = "is a loopback or private address, which only nodes with --allow-private-peers connect to";

function invalidEndpoint(text: string, reason: string): RpcError {
  return new RpcError("INVALID_REQUEST", `The address ${quoted(text)} ${reason}.`);
}

/** Quotes text from a peer for an error message, and truncates it to 80 UTF-16 code units. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}

/**
 * Returns the permission to call an address: always, only if the operator allows it, or never. That is the strictest
 * among the address itself and its embedded IPv4 addresses.
 */
export function classifyAddress(address: string): "public" | "private" | "never" {
  const ip = normalizeAddress(address);
  const all = [ip, ...embeddedAddresses(ip)].map(classifyOne);
  return (["never", "private"] as const).find((reach) => all.includes(reach)) ?? "public";
}

function classifyOne(ip: string): "public" | "private" | "never" {
  const family = isIPv6(ip) ? "ipv6" : "ipv4";
  if (never.check(ip, family)) {
    return "never";
  }
  if (privates.check(ip, family)) {
    return "private";
  }
  return family === "ipv4" || globalIpv6.check(ip, family) ? "public" : "never";
}
