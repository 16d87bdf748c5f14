/**
 * Request headers that the node reads. The type of `Arrival.header` accepts no other name, so that pages of other sites
 * may send every header that has an effect.
 */

/** Headers that pages of other sites may send: the list of preflights. */
export const pageHeaders = [
  ...([
    "content-type",
    "content-encoding",
    "if-match",
    "if-none-match",
    "last-event-id",
    "gatehouse-min-block",
  ] as const),
  ...(["identity", "signature", "timestamp", "network"] as const),
  ...(["connect-protocol-version", "connect-timeout-ms", "connect-content-encoding"] as const),
  ...(["connect-accept-encoding", "grpc-timeout", "grpc-encoding", "grpc-accept-encoding"] as const),
  ...(["traceparent", "tracestate", "baggage"] as const),
  // Sent by clients without an effect: the clients of gRPC-Web, and those that read event streams by fetch.
  ...(["x-grpc-web", "x-user-agent", "cache-control"] as const),
] as const;

/** Headers that browsers set themselves, or send without a preflight, and headers of proxies and operators. */
type OtherHeader =
  | ("accept" | "accept-encoding" | "expect" | "transfer-encoding")
  | ("authorization" | "forwarded" | "x-forwarded-for" | "mcp-protocol-version");

/** Lowercase name of a request header that the node reads. */
export type RequestHeader = (typeof pageHeaders)[number] | OtherHeader;
