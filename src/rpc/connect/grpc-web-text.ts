/** gRPC-Web in base64, for clients that read text alone: each piece is encoded, and padded, by itself. */

/** The bytes of a body in base64, each of whose pieces may be padded: the padding ends what Node.js would decode. */
export function decodeText(text: Buffer): Buffer {
  const pieces = text.toString("latin1").match(/[^=]+={0,2}/g) ?? [];
  return Buffer.concat(pieces.map((piece) => Buffer.from(piece, "base64")));
}

export const encodeText = {
  piece: (bytes: Uint8Array): Buffer => Buffer.from(Buffer.from(bytes).toString("base64")),

  /** Says in the content type that the body is text: in a flat list of names and values. */
  headers: (list: readonly string[]): string[] =>
    list.map((item) => item.replace(/^application\/grpc-web\b(?!-text)/, "application/grpc-web-text")),
};
