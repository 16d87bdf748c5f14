/**
 * gRPC-Web text mode, with a base64 body for clients that read only text. Each piece is encoded and padded separately.
 */

/** Decodes a base64 body of separately padded pieces. Node.js alone would stop at the first padding. */
export function decodeText(text: Buffer): Buffer {
  const pieces = text.toString("latin1").match(/[^=]+={0,2}/g) ?? [];
  return Buffer.concat(pieces.map((piece) => Buffer.from(piece, "base64")));
}

export const encodeText = {
  piece: (bytes: Uint8Array): Buffer => Buffer.from(Buffer.from(bytes).toString("base64")),

  /** Returns the headers with the content type of text mode: a flat list of names and values. */
  headers: (list: readonly string[]): string[] =>
    list.map((item) => item.replace(/^application\/grpc-web\b(?!-text)/, "application/grpc-web-text")),
};
