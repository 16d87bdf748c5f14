/** Messages on the wire of gRPC, gRPC-Web and the streams of Connect: a flag of one byte, the length in four, the bytes. */
import { RpcError } from "../errors.js";
import type { Beginning } from "./exchange.js";

/** Most bytes of one request message, after decompression. */
export const maxMessageBytes = 4 * 1024 * 1024;

/** Bytes before a message. */
export const prefixBytes = 5;

/** A message with its prefix. */
export function writeEnvelope(flags: number, message: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(prefixBytes + message.length);
  bytes[0] = flags;
  bytes.writeUInt32BE(message.length, 1);
  bytes.set(message, prefixBytes);
  return bytes;
}

/** A body that announces a message that is too large need not come. */
export const firstPrefix: Beginning = { bytes: prefixBytes, check: checkLength };

/**
 * The one message of a unary request's body.
 *
 * @throws Failure INVALID_REQUEST when it is not one whole message; PAYLOAD_TOO_LARGE; INTERNAL_ERROR, as gRPC wants
 * it, when it is compressed and no header says how.
 */
export function readOnlyMessage(body: Buffer): Buffer {
  if (body.length < prefixBytes) {
    const message = body.length === 0 ? "The request holds no message." : "The request ended within a message.";
    throw new RpcError("INVALID_REQUEST", message);
  }
  const [flags] = body;
  const lengthBytes = body.readUInt32BE(1);
  if (flags === 1) {
    throw new RpcError("INTERNAL_ERROR", "The message is compressed, and the header grpc-encoding does not say how.");
  }
  if (flags !== 0) {
    throw new RpcError("INVALID_REQUEST", `There is no flag ${flags} of messages.`);
  }
  checkLength(body);
  if (body.length < prefixBytes + lengthBytes) {
    throw new RpcError("INVALID_REQUEST", "The request ended within a message.");
  }
  if (body.length > prefixBytes + lengthBytes) {
    throw new RpcError("INVALID_REQUEST", "The request holds more than the one message that the rpc takes.");
  }
  return body.subarray(prefixBytes);
}

function checkLength(body: Buffer): void {
  if (body.readUInt32BE(1) > maxMessageBytes) {
    throw new RpcError("PAYLOAD_TOO_LARGE", `A message must not be larger than ${maxMessageBytes} bytes.`);
  }
}
