/** Recognition of servers that answer a TLS handshake without TLS. */

/** Returns true if a TLS connection failed because the server responds without TLS, such as with plain HTTP. */
export function isPlainResponse(error: unknown): boolean {
  return error instanceof Error && /wrong version number|packet length too long/i.test(error.message);
}
