/** Cross-origin access: pages of every origin may read public responses. The node uses no cookies. */

/** Headers of every response, as a flat list of names and values. */
export const corsHeaders: readonly string[] = [
  "Access-Control-Allow-Origin",
  "*",
  "Access-Control-Expose-Headers",
  "ETag, X-Node-Dormant, X-Request-Id, Gatehouse-Block, Retry-After, RateLimit, RateLimit-Policy, grpc-status, grpc-message, grpc-status-details-bin",
];

/** Headers of the response to a preflight (`OPTIONS` on any path). */
export const preflightHeaders: readonly string[] = [
  ...corsHeaders,
  "Access-Control-Allow-Methods",
  "GET, POST, OPTIONS",
  "Access-Control-Allow-Headers",
  "Content-Type, If-None-Match, Gatehouse-Min-Block, identity, signature, timestamp, network, connect-protocol-version, connect-timeout-ms, x-grpc-web, x-user-agent, grpc-timeout",
  "Access-Control-Max-Age",
  "86400",
];
