/** gRPC-Web in base64, for clients that read text alone: each piece is encoded, and padded, by itself. */

/** The bytes of a body in base64, whose pieces may be padded one by one and cut anywhere. */
export async function* decodeText(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let rest = "";
  for await (const piece of pieces) {
    const text = rest + Buffer.from(piece).toString("latin1");
    const whole = text.length - (text.length % 4);
    rest = text.slice(whole);
    yield decodeGroups(text.slice(0, whole));
  }
  yield decodeGroups(rest);
}

/** The padding ends a piece, and with it what Node.js would decode. */
function decodeGroups(text: string): Buffer {
  return Buffer.concat((text.match(/[^=]+={0,2}/g) ?? []).map((piece) => Buffer.from(piece, "base64")));
}

export const encodeText = {
  piece: (bytes: Uint8Array): Buffer => Buffer.from(Buffer.from(bytes).toString("base64")),

  /** Says in the content type that the body is text: in a flat list of names and values. */
  headers: (list: readonly string[]): string[] =>
    list.map((item) => item.replace(/^application\/grpc-web\b(?!-text)/, "application/grpc-web-text")),
};
