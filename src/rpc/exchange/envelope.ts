/** Message framing of gRPC, gRPC-Web and Connect streams: one byte of flags, four bytes of length, then the message. */
import { RpcError } from "../errors.js";
import type { EarlyCheck } from "./exchange.js";

/** Limit on a request message after decompression, in bytes. */
export const maxMessageBytes = 4 * 1024 * 1024;

/** Length of the prefix before a message, in bytes. */
export const prefixBytes = 5;

/** Returns a message with its prefix. */
export function writeEnvelope(flags: number, message: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(prefixBytes + message.length);
  bytes[0] = flags;
  bytes.writeUInt32BE(message.length, 1);
  bytes.set(message, prefixBytes);
  return bytes;
}

/** Early check of the first prefix: rejects a message that is too large before the body arrives. */
export const firstPrefix: EarlyCheck = { bytes: prefixBytes, check: checkLength };

/**
 * Returns the only message in the body of a unary request.
 *
 * @throws RpcError INVALID_REQUEST if the body is not exactly one complete message; PAYLOAD_TOO_LARGE; INTERNAL_ERROR,
 * as gRPC requires, if the message is compressed and no header names the encoding.
 */
export function readOnlyMessage(body: Buffer): Buffer {
  if (body.length < prefixBytes) {
    const message = body.length === 0 ? "The request contains no message." : "The request ended within a message.";
    throw new RpcError("INVALID_REQUEST", message);
  }
  const [flags] = body;
  const lengthBytes = body.readUInt32BE(1);
  if (flags === 1) {
    throw new RpcError(
      "INTERNAL_ERROR",
      "The message is compressed, but the header grpc-encoding names no compression.",
    );
  }
  if (flags !== 0) {
    throw new RpcError("INVALID_REQUEST", `The message has unknown flags: ${flags}.`);
  }
  checkLength(body);
  if (body.length < prefixBytes + lengthBytes) {
    throw new RpcError("INVALID_REQUEST", "The request ended within a message.");
  }
  if (body.length > prefixBytes + lengthBytes) {
    throw new RpcError("INVALID_REQUEST", "The request contains more than one message; this rpc accepts exactly one.");
  }
  return body.subarray(prefixBytes);
}

function checkLength(body: Buffer): void {
  if (body.readUInt32BE(1) > maxMessageBytes) {
    throw new RpcError("PAYLOAD_TOO_LARGE", `A message must not be larger than ${maxMessageBytes} bytes.`);
  }
}
