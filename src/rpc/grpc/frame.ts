/** Messages on the wire of gRPC: a flag of one byte, the length in four, and the bytes. */
import { isImmutable } from "../../base/immutable.js";
import { binaryEncoder } from "../codec/binary-encoder.js";
import type { DescMessage } from "@bufbuild/protobuf";
import { Failure } from "../errors.js";

/** Most bytes of one request message, after decompression. */
export const maxMessageBytes = 4 * 1024 * 1024;

/** Bytes before a message. */
export const prefixBytes = 5;

/** Frames of immutable messages that are longer than this are kept. */
const longBytes = 16 * 1024;

/** A message with its prefix. */
export interface Frame {
  readonly bytes: Buffer;
  /** Kept with its message, and sent to whoever asks. */
  readonly isShared: boolean;
}

/** Compiles a message descriptor to an encoder of whole frames. */
export function frameEncoder(desc: DescMessage): (message: object) => Frame {
  const encode = binaryEncoder(desc);
  const kept = new WeakMap<object, Frame>();
  return (message) => {
    const known = kept.get(message);
    if (known !== undefined) {
      return known;
    }
    const body = encode(message);
    const bytes = Buffer.allocUnsafe(prefixBytes + body.length);
    bytes[0] = 0;
    bytes.writeUInt32BE(body.length, 1);
    bytes.set(body, prefixBytes);
    if (body.length < longBytes || !isImmutable(message)) {
      return { bytes, isShared: false };
    }
    const frame = { bytes, isShared: true };
    kept.set(message, frame);
    return frame;
  };
}

/**
 * The one message of a unary request's body.
 *
 * @throws Failure INVALID_REQUEST when it is not one whole message; PAYLOAD_TOO_LARGE; INTERNAL_ERROR, as gRPC wants
 * it, when it is compressed and no header says how.
 */
export function readOnlyMessage(body: Buffer): Buffer {
  if (body.length < prefixBytes) {
    const message = body.length === 0 ? "The request holds no message." : "The request ended within a message.";
    throw new Failure("INVALID_REQUEST", message);
  }
  const [flags] = body;
  const lengthBytes = body.readUInt32BE(1);
  if (flags === 1) {
    throw new Failure("INTERNAL_ERROR", "The message is compressed, and the header grpc-encoding does not say how.");
  }
  if (flags !== 0) {
    throw new Failure("INVALID_REQUEST", `There is no flag ${flags} of messages.`);
  }
  if (lengthBytes > maxMessageBytes) {
    throw new Failure("PAYLOAD_TOO_LARGE", `A message must not be larger than ${maxMessageBytes} bytes.`);
  }
  if (body.length < prefixBytes + lengthBytes) {
    throw new Failure("INVALID_REQUEST", "The request ended within a message.");
  }
  if (body.length > prefixBytes + lengthBytes) {
    throw new Failure("INVALID_REQUEST", "The request holds more than the one message that the rpc takes.");
  }
  return body.subarray(prefixBytes);
}
