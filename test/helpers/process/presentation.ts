/**
 * TLSNotary presentations (0.1.0-alpha.12), signed by a test notary key. They contain no server identity, which would
 * require a certificate.
 */
import { secp256k1 } from "@noble/curves/secp256k1.js";
import { blake3 } from "@noble/hashes/blake3.js";

/** A direction of a connection. */
type Direction = "sent" | "recv";

/** The first byte, and the first byte after the range. */
type Range = readonly [start: number, end: number];

/** The content of a presentation. */
export interface PresentationSpec {
  /** Seconds since the epoch. */
  readonly timeS?: number;
  readonly sent?: string;
  readonly recv?: string;
  /** The revealed ranges of each direction. */
  readonly revealSent?: readonly Range[];
  readonly revealRecv?: readonly Range[];
}

const notarySecret = Uint8Array.from(Buffer.alloc(32, 7));
const notaryPublic = secp256k1.getPublicKey(notarySecret, true);

/** The key of the test notary, in the format of `--notary-keys`. */
export const notaryKey = `1:${Buffer.from(notaryPublic).toString("hex")}`;

const blake3Id = 2;
const secp256k1Id = 1;

/** The two encodings of lengths and tags: fixed 8 and 4 bytes, or variable length. */
interface Encoding {
  length(value: number): Buffer;
  tag(value: number): Buffer;
}

const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};
const u64 = (value: number): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
};
const leb = (value: number): Buffer =>
  value < 0x80 ? Buffer.from([value]) : Buffer.concat([Buffer.from([(value & 0x7f) | 0x80]), leb(value >>> 7)]);

/** The encoding that is sent. */
const bincode: Encoding = { length: u64, tag: u32 };
/** The encoding that is hashed and signed. */
const bcs: Encoding = { length: leb, tag: leb };

const join = (...parts: readonly Uint8Array[]): Buffer => Buffer.concat(parts);
const bytesOf = (encoding: Encoding, bytes: Uint8Array): Buffer => join(encoding.length(bytes.length), bytes);
const hash = (bytes: Uint8Array): Buffer => Buffer.from(blake3(bytes));
const typedHash = (encoding: Encoding, value: Uint8Array): Buffer =>
  join(Buffer.from([blake3Id]), bytesOf(encoding, value));
const rangesOf = (encoding: Encoding, ranges: readonly Range[]): Buffer =>
  join(encoding.length(ranges.length), ...ranges.map(([start, end]) => join(u64(start), u64(end))));

/** Builds a presentation, in bincode. */
export function buildPresentation(spec: PresentationSpec = {}): Buffer {
  const {
    timeS = 1_767_225_600,
    sent = "GET /secret HTTP/1.1\r\nauthorization: hidden\r\n\r\n",
    recv = "HTTP/1.1 200 OK\r\n\r\nbalance: 42, name: hidden",
    revealSent = [[0, 22]],
    revealRecv = [
      [0, 19],
      [19, 30],
    ],
  } = spec;
  const texts = { sent: Buffer.from(sent), recv: Buffer.from(recv) };
  const reveals = { sent: mergeTouching(revealSent), recv: mergeTouching(revealRecv) };
  const directions = (["sent", "recv"] as const).filter((direction) => reveals[direction].length > 0);
  const blinders: Record<Direction, Buffer> = { sent: Buffer.alloc(16, 1), recv: Buffer.alloc(16, 2) };
  const revealed = (direction: Direction): Buffer =>
    join(...reveals[direction].map(([start, end]) => texts[direction].subarray(start, end)));

  type Field = readonly [type: string, encode: (encoding: Encoding) => Buffer];
  const fields: Field[] = [
    ["VerifyingKey", (encoding) => join(Buffer.from([secp256k1Id]), bytesOf(encoding, notaryPublic))],
    ["ConnectionInfo", (encoding) => join(u64(timeS), encoding.tag(0), u32(texts.sent.length), u32(texts.recv.length))],
    ["ServerEphemKey", (encoding) => join(encoding.tag(0), bytesOf(encoding, Buffer.alloc(65, 4)))],
    ["ServerCertCommitment", (encoding) => typedHash(encoding, Buffer.alloc(32, 5))],
  ];
  const commitments = directions.map((direction): Field => [
    "TranscriptCommitment",
    (encoding) =>
      join(
        encoding.tag(1),
        encoding.tag(direction === "sent" ? 0 : 1),
        rangesOf(encoding, reveals[direction]),
        typedHash(encoding, hash(join(revealed(direction), blinders[direction]))),
      ),
  ]);
  const all = [...fields, ...commitments];
  const root = merkleRoot(
    all.map(([type, encode]) => hash(join(hash(Buffer.from(type)).subarray(0, 16), encode(bcs)))),
  );
  const header = (encoding: Encoding): Buffer => join(Buffer.alloc(16, 9), u32(0), typedHash(encoding, root));
  const signature = secp256k1.sign(header(bcs), notarySecret, { prehash: true, format: "compact" });
  const numbered = (list: readonly Field[], first: number): Buffer =>
    join(...list.map(([, encode], i) => join(u32(first + i), encode(bincode))));

  return join(
    Buffer.from([secp256k1Id]),
    bytesOf(bincode, signature),
    header(bincode),
    numbered(fields, 0),
    bincode.length(0),
    bincode.length(commitments.length),
    numbered(commitments, fields.length),
    // The Merkle proof of the body, with all leaves.
    Buffer.from([blake3Id]),
    u64(all.length),
    bincode.length(0),
    // No identity, but a transcript.
    Buffer.from([0, 1]),
    bytesOf(bincode, revealed("sent")),
    bytesOf(bincode, revealed("recv")),
    rangesOf(bincode, reveals.sent),
    rangesOf(bincode, reveals.recv),
    u64(texts.sent.length),
    u64(texts.recv.length),
    Buffer.from([0]),
    bincode.length(directions.length),
    ...directions.map((direction) =>
      join(
        u32(direction === "sent" ? 0 : 1),
        rangesOf(bincode, reveals[direction]),
        Buffer.from([blake3Id]),
        blinders[direction],
      ),
    ),
  );
}

function merkleRoot(leaves: readonly Buffer[]): Buffer {
  if (leaves.length === 1) {
    return leaves[0]!;
  }
  const above = Array.from({ length: Math.ceil(leaves.length / 2) }, (_, i) => {
    const [left, right] = [leaves[2 * i]!, leaves[2 * i + 1]];
    return right === undefined ? left : hash(join(left, right));
  });
  return merkleRoot(above);
}

/** Merges adjacent ranges. */
function mergeTouching(ranges: readonly Range[]): Range[] {
  const merged: [number, number][] = [];
  for (const [start, end] of ranges) {
    const last = merged.at(-1);
    if (last?.[1] === start) {
      last[1] = end;
    } else {
      merged.push([start, end]);
    }
  }
  return merged;
}
