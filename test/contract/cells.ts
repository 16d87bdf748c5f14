/**
 * The matrix of protocols and transports. Each protocol runs every contract case over one transport, its home, and one
 * case of each kind over the others. Protocols with streams run every stream over all transports.
 */
import type { TransportName } from "../helpers/wire/transports.js";

/** Every protocol of clients. */
export type Protocol =
  | "plain JSON"
  | "JSON-RPC"
  | "Connect JSON"
  | "Connect binary"
  | "Connect GET"
  | "gRPC-Web"
  | "gRPC-Web text"
  | "gRPC"
  | "gRPC by Connect";

/** Protocols with streams. */
export const streaming: ReadonlySet<Protocol> = new Set<Protocol>([
  "Connect JSON",
  "Connect binary",
  "gRPC-Web",
  "gRPC-Web text",
  "gRPC",
  "gRPC by Connect",
]);

const onEveryHttp = [
  "plain JSON",
  "JSON-RPC",
  "Connect JSON",
  "Connect binary",
  "Connect GET",
  "gRPC-Web",
  "gRPC-Web text",
] as const;
const onHttp2 = [...onEveryHttp, "gRPC", "gRPC by Connect"] as const;

/** Returns the transport over which a protocol runs every case; not HTTP/1.1 for plain JSON, which is the reference. */
export function homeOf(protocol: Protocol): TransportName {
  const isHome = ([name, protocols]: [string, readonly Protocol[]]): boolean =>
    protocols.includes(protocol) && !(protocol === "plain JSON" && name === "HTTP/1.1");
  return Object.entries(cells).find(isHome)![0] as TransportName;
}

/** Cells of the matrix. */
export const cells: Readonly<Record<TransportName, readonly Protocol[]>> = {
  "HTTP/1.1": onEveryHttp,
  "HTTP/2 by prior knowledge": onHttp2,
  "TLS with ALPN h2": onHttp2,
  "TLS with ALPN http/1.1": onEveryHttp,
  "TLS with ALPN h2 and http/1.1": onHttp2,
};
