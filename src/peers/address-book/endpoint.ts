/**
 * Endpoints that a node may call because a peer named them. Private ranges require a setting. Ranges that identify no
 * single machine, and addresses at which clouds serve secrets, are always rejected.
 */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { CallError } from "../../rpc/channel.js";
import { RpcError } from "../../rpc/errors.js";
import { classifyAddress } from "./address-ranges.js";
import { normalizeAddress } from "../../base/ip-address.js";

/** Policy of the node for endpoints. */
export interface EndpointPolicy {
  /** True if endpoints are https://. False for http://, if the network does without TLS. */
  readonly tls: boolean;
  /** True if loopback and private addresses may be called. */
  readonly allowPrivate: boolean;
}

/** Address to call. A checked IP address instead of a name, so that a second lookup cannot change the target. */
export interface Address {
  readonly ip: string;
  readonly port: number;
}

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
      `must begin with ${scheme}//, as nodes of this network ${tls ? "use" : "do not use"} TLS`,
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
  const reason = isIP(host) === 0 ? findNameViolation(host, policy) : findAddressViolation(host, policy);
  if (reason !== undefined) {
    throw invalidEndpoint(endpoint, reason);
  }
}

/**
 * Resolves an endpoint to an address that the policy allows.
 *
 * @throws RpcError INVALID_REQUEST if the policy forbids every address.
 * @throws CallError if the name cannot be resolved. The name may be valid, so this is only a failed call.
 */
export async function resolveEndpoint(endpoint: string, policy: EndpointPolicy): Promise<Address> {
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
  switch (classifyAddress(address)) {
    case "never":
      return "is an address that nodes never connect to";
    case "private":
      return allowPrivate ? undefined : privateReason;
    case "public":
      return undefined;
  }
}

function findNameViolation(host: string, { allowPrivate }: EndpointPolicy): string | undefined {
  return !allowPrivate && /^(.*\.)?localhost\.?$/.test(host) ? privateReason : undefined;
}

const privateReason = "is a loopback or private address, which only nodes with --allow-private-peers connect to";

function invalidEndpoint(text: string, reason: string): RpcError {
  return new RpcError("INVALID_REQUEST", `The address ${quoted(text)} ${reason}.`);
}

/** Quotes text from a peer for an error message, and truncates it to 80 UTF-16 code units. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
