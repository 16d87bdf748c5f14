/**
 * Header blocks of HTTP/2 (HPACK, RFC 7541). The encoder writes only literal fields without indexing, so that tests
 * control every byte. The decoder reads every form, for the headers of servers.
 */

/** A header field; pseudo headers such as `:path` come first. */
export type Field = readonly [name: string, value: string | Buffer];

/**
 * Encodes a block of literal fields without indexing and compression.
 *
 * @param tableSizeBytes - New size of the dynamic table, set by the block; 4,096 at first.
 */
export function encodeBlock(fields: readonly Field[], tableSizeBytes?: number): Buffer {
  return Buffer.concat([
    ...(tableSizeBytes === undefined ? [] : [encodeInteger(tableSizeBytes, 5, 0x20)]),
    ...fields.flatMap(([name, value]) => [Buffer.from([0]), encodeText(name), encodeText(value)]),
  ]);
}

/** Encodes an integer after the prefix bits of a byte. */
export function encodeInteger(value: number, prefixBits: number, firstBits = 0): Buffer {
  const limit = 2 ** prefixBits - 1;
  if (value < limit) {
    return Buffer.from([firstBits | value]);
  }
  const bytes = [firstBits | limit];
  let rest = value - limit;
  for (; rest >= 128; rest = Math.floor(rest / 128)) {
    bytes.push(128 | (rest % 128));
  }
  return Buffer.from([...bytes, rest]);
}

function encodeText(text: string | Buffer): Buffer {
  const bytes = Buffer.from(text as string);
  return Buffer.concat([encodeInteger(bytes.length, 7), bytes]);
}

/** Creates a decoder for the header blocks of one connection. Each block may refer to earlier ones. */
export function createBlockReader(): (block: Buffer) => [name: string, value: string][] {
  const recent: [name: string, value: string][] = [];
  let [sizeBytes, maxBytes] = [0, 4096];
  const entry = (index: number): readonly [name: string, value: string] => {
    const found = index <= staticTable.length ? staticTable[index - 1] : recent[index - staticTable.length - 1];
    if (found === undefined) {
      throw new Error(`There is no header field ${index}.`);
    }
    return found;
  };
  const shrink = (): void => {
    while (sizeBytes > maxBytes) {
      sizeBytes -= sizeOf(recent.pop()!);
    }
  };
  return (block) => {
    const cursor = createCursor(block);
    const fields: [name: string, value: string][] = [];
    while (!cursor.atEnd()) {
      const first = cursor.peek();
      if (first & 0x80) {
        fields.push([...entry(cursor.integer(7))]);
      } else if ((first & 0xe0) === 0x20) {
        maxBytes = cursor.integer(5);
        shrink();
      } else {
        const isRemembered = (first & 0x40) !== 0;
        const index = cursor.integer(isRemembered ? 6 : 4);
        const field: [string, string] = [index === 0 ? cursor.text() : entry(index)[0], cursor.text()];
        fields.push(field);
        if (isRemembered) {
          recent.unshift(field);
          sizeBytes += sizeOf(field);
          shrink();
        }
      }
    }
    return fields;
  };
}

function sizeOf([name, value]: readonly [string, string]): number {
  return name.length + value.length + 32;
}

function createCursor(block: Buffer) {
  let at = 0;
  const integer = (prefixBits: number): number => {
    const limit = 2 ** prefixBits - 1;
    let value = block[at++]! & limit;
    if (value < limit) {
      return value;
    }
    for (let factor = 1; ; factor *= 128) {
      const byte = block[at++]!;
      value += (byte & 127) * factor;
      if (byte < 128) {
        return value;
      }
    }
  };
  return {
    atEnd: () => at >= block.length,
    peek: () => block[at]!,
    integer,
    /** The string as latin1, with one character for each byte. */
    text(): string {
      const isHuffman = (block[at]! & 0x80) !== 0;
      const length = integer(7);
      const bytes = block.subarray(at, (at += length));
      return isHuffman ? unpackHuffman(bytes) : bytes.toString("latin1");
    },
  };
}

/**
 * The number of bits of each byte, and of the end of string, in the code of RFC 7541, appendix B, as digits of base 36.
 * The code is canonical: codes of one length are consecutive numbers, in the order of the bytes.
 */
const codeLengths = Array.from(
  "dnsssssssoussussssssssusssssssss6aacd68baa8b8666555666666678f6ca" +
    "d67777777777777777777777878djde6f56565666577666567655677777fbeds" +
    "kmkkmmmnmnnnnnonoomnonnnnlmnmnnomlkmmnnlnmmolmnnllmlnmnnkmmmnmmn" +
    "qqkjmnmpqqqrrqopjlqrrqrollqqsrrrkoklmllnmmppooqnqrqqrrrrrsrrrrrq" +
    "u",
  (digit) => parseInt(digit, 36),
);

/** Bytes by their code, as a string of bits. */
const byCode = new Map<string, number>();

let [nextCode, lastLength] = [0, 0];
for (const { length, byte } of codeLengths
  .map((length, byte) => ({ length, byte }))
  .sort((a, b) => a.length - b.length || a.byte - b.byte)) {
  nextCode *= 2 ** (length - lastLength);
  lastLength = length;
  byCode.set(nextCode.toString(2).padStart(length, "0"), byte);
  nextCode += 1;
}

function unpackHuffman(packed: Buffer): string {
  const bytes: number[] = [];
  let code = "";
  for (const bit of [...packed].map((byte) => byte.toString(2).padStart(8, "0")).join("")) {
    code += bit;
    const byte = byCode.get(code);
    if (byte !== undefined) {
      bytes.push(byte);
      code = "";
    }
  }
  // The rest is padding of the last byte.
  if (code.length > 7 || code.includes("0")) {
    throw new Error(`This is not Huffman code: ${packed.toString("hex")}`);
  }
  return Buffer.from(bytes).toString("latin1");
}

/** The static table of RFC 7541, appendix A: names with their values, if any. */
const staticTable: readonly (readonly [name: string, value: string])[] = (
  ":authority|:method=GET|:method=POST|:path=/|:path=/index.html|:scheme=http|:scheme=https|:status=200|:status=204|" +
  ":status=206|:status=304|:status=400|:status=404|:status=500|accept-charset|accept-encoding=gzip, deflate|" +
  "accept-language|accept-ranges|accept|access-control-allow-origin|age|allow|authorization|cache-control|" +
  "content-disposition|content-encoding|content-language|content-length|content-location|content-range|content-type|" +
  "cookie|date|etag|expect|expires|from|host|if-match|if-modified-since|if-none-match|if-range|if-unmodified-since|" +
  "last-modified|link|location|max-forwards|proxy-authenticate|proxy-authorization|range|referer|refresh|retry-after|" +
  "server|set-cookie|strict-transport-security|transfer-encoding|user-agent|vary|via|www-authenticate"
)
  .split("|")
  .map((field) => {
    const [name, value = ""] = field.split("=") as [string, string?];
    return [name, value];
  });
