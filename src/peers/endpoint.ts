/**
 * Which addresses a node may call because a peer named them. Private ranges are for networks that say so; addresses
 * that are no machine's own, and those at which clouds tell secrets, are for none.
 */
import { lookup } from "node:dns/promises";
import { BlockList, isIP } from "node:net";
import { Failure } from "../rpc/errors.js";

/** What the node allows. */
export interface EndpointPolicy {
  /** Endpoints are https://; without TLS between nodes, http://. */
  readonly tls: boolean;
  /** Loopback and private addresses may be called. */
  readonly allowPrivate: boolean;
}

/** An address to call: an IP address, so that what was checked is what is called. */
export interface Address {
  readonly ip: string;
  readonly port: number;
}

/** Longest URL that a peer may name. */
const maxLength = 300;

const v4 = (list: BlockList, range: string): void => {
  const [net = "", prefix] = range.split("/");
  list.addSubnet(net, Number(prefix), "ipv4");
};
const v6 = (list: BlockList, range: string): void => {
  const [net = "", prefix] = range.split("/");
  list.addSubnet(net, Number(prefix), "ipv6");
};

/** Unspecified, link-local (cloud metadata among them), multicast, reserved; and metadata services elsewhere. */
const never = new BlockList();
["0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4", "100.100.100.200/32", "168.63.129.16/32"].forEach(
  (range) => v4(never, range),
);
["::/128", "fe80::/10", "ff00::/8", "fd00:ec2::254/128"].forEach((range) => v6(never, range));

/** Loopback, private, shared, benchmarking, and IPv6 ranges that carry IPv4 addresses. */
const privateRanges = new BlockList();
[
  "127.0.0.0/8",
  "10.0.0.0/8",
  "172.16.0.0/12",
  "192.168.0.0/16",
  "100.64.0.0/10",
  "192.0.0.0/24",
  "198.18.0.0/15",
].forEach((range) => v4(privateRanges, range));
["::1/128", "fc00::/7", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32"].forEach((range) =>
  v6(privateRanges, range),
);

/**
 * The one form of an endpoint: scheme://host:port in lower case.
 *
 * @throws Failure INVALID_REQUEST
 */
export function parseEndpoint(text: string, { tls }: Pick<EndpointPolicy, "tls">): string {
  const scheme = tls ? "https:" : "http:";
  const url = parseWebAddress(text);
  if (url.protocol !== scheme) {
    throw invalid(text, `must begin with ${scheme}//, as nodes of this network ${tls ? "use" : "do without"} TLS`);
  }
  return `${scheme}//${url.hostname}:${portOf(url)}`;
}

/**
 * The one form of a connection string, which nobody calls: scheme://host:port.
 *
 * @throws Failure INVALID_REQUEST
 */
export function parseConnectionString(text: string): string {
  const url = parseWebAddress(text);
  return `${url.protocol}//${url.hostname}:${portOf(url)}`;
}

/**
 * Refuses an endpoint whose host is an address that peers may not name. A name is looked up when it is called.
 *
 * @throws Failure INVALID_REQUEST
 */
export function checkHost(endpoint: string, policy: EndpointPolicy): void {
  const host = hostOf(endpoint);
  const reason = isIP(host) === 0 ? whyNotName(host, policy) : whyNot(host, policy);
  if (reason !== undefined) {
    throw invalid(endpoint, reason);
  }
}

/**
 * Finds the address of an endpoint.
 *
 * @throws Failure INVALID_REQUEST when the policy forbids it, or when its name is unknown.
 */
export async function resolveEndpoint(endpoint: string, policy: EndpointPolicy): Promise<Address> {
  const host = hostOf(endpoint);
  const port = portOf(new URL(endpoint));
  const found = isIP(host) === 0 ? await lookUp(endpoint, host) : [host];
  const reasons = found.map((ip) => whyNot(ip, policy));
  const allowed = found[reasons.indexOf(undefined)];
  if (allowed === undefined) {
    throw invalid(endpoint, reasons[0] ?? "has no address");
  }
  return { ip: allowed, port };
}

async function lookUp(endpoint: string, host: string): Promise<string[]> {
  try {
    return (await lookup(host, { all: true })).map(({ address }) => address);
  } catch {
    throw invalid(endpoint, "has a name that nobody knows");
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
    throw invalid(text, "is not of the form https://host:port");
  }
  return url;
}

/** Without the brackets of IPv6, and IPv4 where it is IPv4 in IPv6. */
function hostOf(endpoint: string): string {
  return unmap(new URL(endpoint).hostname.replace(/^\[|\]$/g, ""));
}

function portOf({ protocol, port }: URL): number {
  return port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);
}

/** URLs write such an address in hexadecimal. */
function unmap(ip: string): string {
  const words = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/i.exec(ip);
  if (words === null) {
    return ip.replace(/^::ffff:(?=\d+\.)/i, "");
  }
  const number = parseInt(words[1]!, 16) * 0x10000 + parseInt(words[2]!, 16);
  return [24, 16, 8, 0].map((shift) => (number >>> shift) & 0xff).join(".");
}

function whyNot(address: string, { allowPrivate }: EndpointPolicy): string | undefined {
  const ip = unmap(address);
  const family = isIP(ip) === 6 ? "ipv6" : "ipv4";
  if (never.check(ip, family)) {
    return "is an address that nodes never call";
  }
  return !allowPrivate && privateRanges.check(ip, family) ? privateReason : undefined;
}

function whyNotName(host: string, { allowPrivate }: EndpointPolicy): string | undefined {
  return !allowPrivate && /^(.*\.)?localhost\.?$/.test(host) ? privateReason : undefined;
}

const privateReason = "is a loopback or private address, which only nodes with --allow-private-peers call";

function invalid(text: string, reason: string): Failure {
  return new Failure("INVALID_REQUEST", `The address ${shown(text)} ${reason}.`);
}

/** Text of a peer, for a sentence. */
export function shown(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
