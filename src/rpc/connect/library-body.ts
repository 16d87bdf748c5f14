/** Conversion of request bodies to the form that the Connect library reads. */
import { type DescMethod, toJsonString } from "@bufbuild/protobuf";
import { Readable } from "node:stream";
import { requestDecoder } from "../codec/request-rules.js";
import { readJsonText } from "../codec/json-request.js";
import { firstPrefix, maxMessageBytes, readOnlyMessage, writeEnvelope } from "../exchange/rpc-requests.js";
import type { Exchange } from "../exchange/exchange.js";
import type { RpcMedia } from "../exchange/rpc-requests.js";
import type { Permit } from "../gate.js";
import type { ServedMethod } from "../service.js";
import { decodeText } from "./grpc-web-text.js";

/**
 * Reads the body. A single message is buffered and validated first, so that the errors are the same in every protocol.
 * JSON is rewritten, because the library does not know the words that requests may use instead of numbers.
 *
 * @throws RpcError
 */
export async function readLibraryBody(
  exchange: Exchange,
  { desc }: ServedMethod,
  { isStream, isText, format }: RpcMedia,
  permit: Permit,
): Promise<AsyncIterable<Uint8Array>> {
  if (desc.methodKind === "bidi_streaming" && !isText) {
    return exchange.readChunks();
  }
  if (!isStream) {
    return Readable.from([await exchange.readBytes(maxMessageBytes, permit)]);
  }
  const sent = await exchange.readBytes(2 * maxMessageBytes, permit, isText ? undefined : firstPrefix);
  const body = isText ? decodeText(sent) : sent;
  // Only the library can read compressed messages.
  if (body[0] !== 0) {
    return Readable.from([body]);
  }
  return Readable.from([writeEnvelope(0, checkMessage(desc, format, readOnlyMessage(body)))]);
}

/**
 * Validates a message as in every other protocol, and returns it in the form that the library reads.
 *
 * @throws RpcError INVALID_REQUEST
 */
export function checkMessage({ input }: DescMethod, format: RpcMedia["format"], bytes: Uint8Array): Buffer {
  if (format === "proto") {
    requestDecoder(input)(bytes);
    return Buffer.from(bytes);
  }
  const message = readJsonText(input, Buffer.from(bytes).toString("utf8"));
  return Buffer.from(toJsonString(input, message as never));
}
