/** Encodes frames of HTTP/2 (RFC 9113), and gRPC messages in them. */

/** The first bytes of a connection (RFC 9113, section 3.4). */
export const preface: Buffer = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** Types of frames (RFC 9113, section 6). */
export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

/** Flags of frames; what a bit means depends on the type. */
export const flags = { ack: 1, endStream: 1, endHeaders: 4, padded: 8 } as const;

/** Settings that clients send. */
export const settingIds = { headerTableSize: 1, maxConcurrentStreams: 3, initialWindow: 4, maxFrameSize: 5 } as const;

/** Error codes (RFC 9113, section 7). */
export const errorCodes = { noError: 0, protocolError: 1, cancel: 8, enhanceYourCalm: 11 } as const;

/** A received frame. */
export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

/** Encodes a frame. */
export function frameBytes(type: number, flagBits: number, streamId: number, payload: Buffer = noBytes): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flagBits, 4);
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

/** Encodes frames that open streams with a header block, and reset each at once. */
export function resetStreams(block: Buffer, firstStreamId: number, count: number): Buffer {
  const ids = Array.from({ length: count }, (_, i) => firstStreamId + 2 * i);
  return Buffer.concat(
    ids.flatMap((streamId) => [
      frameBytes(frameTypes.headers, flags.endHeaders, streamId, block),
      frameBytes(frameTypes.reset, 0, streamId, numberBytes(errorCodes.cancel)),
    ]),
  );
}

/** An empty payload. */
export const noBytes: Buffer = Buffer.alloc(0);

/** Encodes a gRPC message: 1 byte of flags, 4 bytes of length, and the content. */
export function grpcMessage(bytes: Uint8Array, flagByte = 0, lengthBytes = bytes.length): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flagByte, 0);
  head.writeUInt32BE(lengthBytes, 1);
  return Buffer.concat([head, bytes]);
}

/** Encodes the payload of SETTINGS. */
export function settingsPayload(values: Readonly<Record<number, number>>): Buffer {
  return Buffer.concat(
    Object.entries(values).map(([id, value]) => {
      const setting = Buffer.alloc(6);
      setting.writeUInt16BE(Number(id), 0);
      setting.writeUInt32BE(value, 2);
      return setting;
    }),
  );
}

/** Encodes a 32-bit number. */
export function numberBytes(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
