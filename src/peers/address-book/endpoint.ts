/**
 * Which addresses a node may call because a peer named them. Private ranges are for networks that say so; addresses
 * that are no machine's own, and those at which clouds tell secrets, are for none.
 */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { CallError } from "../../rpc/channel.js";
import { RpcError } from "../../rpc/errors.js";
import { reachOf } from "./address-ranges.js";
import { plainAddress } from "./ip-address.js";

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
 * @throws Failure INVALID_REQUEST when the policy forbids it.
 * @throws CallError when its name cannot be looked up, which is no more than that nobody can be called now.
 */
export async function resolveEndpoint(endpoint: string, policy: EndpointPolicy): Promise<Address> {
  const host = hostOf(endpoint);
  const port = portOf(new URL(endpoint));
  const found = isIP(host) === 0 ? await lookUp(host) : [host];
  const reasons = found.map((ip) => whyNot(ip, policy));
  const allowed = found[reasons.indexOf(undefined)];
  if (allowed === undefined) {
    throw invalid(endpoint, reasons[0] ?? "has no address");
  }
  return { ip: allowed, port };
}

async function lookUp(host: string): Promise<string[]> {
  try {
    return (await lookup(host, { all: true })).map(({ address }) => address);
  } catch (error) {
    throw new CallError(
      `The name cannot be looked up: ${(error as NodeJS.ErrnoException).code ?? "no answer"}.`,
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
    throw invalid(text, "is not of the form https://host:port");
  }
  return url;
}

/** Without the brackets of IPv6, and IPv4 where it is IPv4 in IPv6. */
function hostOf(endpoint: string): string {
  return plainAddress(new URL(endpoint).hostname.replace(/^\[|\]$/g, ""));
}

function portOf({ protocol, port }: URL): number {
  return port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);
}

function whyNot(address: string, { allowPrivate }: EndpointPolicy): string | undefined {
  switch (reachOf(address)) {
    case "never":
      return "is an address that nodes never call";
    case "private":
      return allowPrivate ? undefined : privateReason;
    case "public":
      return undefined;
  }
}

function whyNotName(host: string, { allowPrivate }: EndpointPolicy): string | undefined {
  return !allowPrivate && /^(.*\.)?localhost\.?$/.test(host) ? privateReason : undefined;
}

const privateReason = "is a loopback or private address, which only nodes with --allow-private-peers call";

function invalid(text: string, reason: string): RpcError {
  return new RpcError("INVALID_REQUEST", `The address ${shown(text)} ${reason}.`);
}

/** Text of a peer, for a sentence. */
export function shown(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
