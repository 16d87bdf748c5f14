/**
 * Calls that the Connect library serves: streams of every protocol, compressed calls, and gRPC-Web in text or JSON.
 * Functions, gate and error catalog are the same as in every other protocol.
 */
import { type DescMethod, toJsonString } from "@bufbuild/protobuf";
import { type ContextValues, createConnectRouter } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { Readable } from "node:stream";
import { readJsonBytes } from "../codec/json-request.js";
import { requestDecoder } from "../codec/request-rules.js";
import type { RpcError } from "../errors.js";
import type { HttpResponse, Exchange } from "../exchange/exchange.js";
import { corsHeaders, privateHeaders, statusResponse } from "../exchange/responses.js";
import {
  firstPrefix,
  longTimeouts,
  maxMessageBytes,
  readOnlyMessage,
  type RpcMedia,
  type ServeRpc,
  writeEnvelope,
} from "../exchange/rpc-requests.js";
import { type ServeDeps, serveExchange } from "../exchange/serve.js";
import type { Permit, ProtocolDeps } from "../gate.js";
import type { Call, ServedMethod } from "../service.js";
import { streamError, unaryError } from "./connect-error.js";
import { connectRoutes, createLibraryCall, libraryOptions, valuesOf } from "./routes.js";

export function createLibraryHandler(deps: ProtocolDeps): ServeRpc {
  const router = createConnectRouter(libraryOptions);
  connectRoutes(deps)(router);
  const byPath = new Map<string, UniversalHandler>(router.handlers.map((handler) => [handler.requestPath, handler]));

  return (exchange, served, media) =>
    serveLibraryCall(exchange, served, media, deps, async (permit, call, contextValues) => {
      const body = await readLibraryBody(exchange, served, media, permit);
      const request = { ...toRequest(exchange, media), body, signal: call.signal, contextValues };
      await sendLibraryResponse(exchange, await byPath.get(exchange.path)!(request), media, permit);
    });
}

/**
 * Serves a call that the library processes.
 *
 * @param run passes the call to the library with these context values, and sends the response.
 */
export function serveLibraryCall(
  exchange: Exchange,
  served: ServedMethod,
  media: RpcMedia,
  deps: ServeDeps,
  run: (permit: Permit, call: Call, values: ContextValues) => Promise<void>,
): void {
  serveExchange(
    exchange,
    {
      protocol: media.protocol,
      method: served,
      async respond(permit, call) {
        const libraryCall = createLibraryCall(exchange.requestId, served);
        await run(permit, call, valuesOf(call.caller, libraryCall));
        permit.recordOutcome(libraryCall.failure);
        return undefined;
      },
      reject: (failure, headers) => createCallError(exchange, failure, headers, media),
    },
    deps,
  );
}

function toRequest(exchange: Exchange, { protocol, format }: RpcMedia) {
  const header = new Headers();
  for (const [name, value] of exchange.headerEntries()) {
    try {
      header.append(name, value);
    } catch {
      // The library reads no header with a name or value that it cannot represent.
    }
  }
  longTimeouts(exchange).forEach((name) => header.delete(name));
  if (protocol !== "connect") {
    header.set("content-type", `application/${protocol}+${format}`);
  }
  return {
    httpVersion: exchange.isHttp2 ? "2.0" : "1.1",
    url: `http://localhost${exchange.path}${exchange.query === "" ? "" : `?${exchange.query}`}`,
    method: exchange.method,
    header,
  };
}

/** Writes the library's response, each piece after the one before has been sent. */
export async function sendLibraryResponse(
  exchange: Exchange,
  { status, header, body, trailer }: Awaited<ReturnType<UniversalHandler>>,
  media: RpcMedia,
  permit: Permit,
): Promise<void> {
  const headers = ["X-Request-Id", exchange.requestId, ...corsHeaders, ...permit.headers];
  headers.push(...(exchange.method === "GET" ? privateHeaders : []));
  header?.forEach((value, name) => headers.push(name, value));
  const start = (): void => exchange.start(status, media.isText ? encodeText.headers(headers) : headers);
  for await (const piece of body ?? []) {
    const bytes = media.isText ? encodeText.piece(piece) : piece;
    await exchange.writeReserved(permit, bytes, start);
    if (exchange.isClosed) {
      return;
    }
  }
  start();
  const trailers: string[] = [];
  trailer?.forEach((value, name) => trailers.push(name, value));
  exchange.finish(trailers);
}

/** Returns the error response of a call that was rejected by the gate, or that failed outside the library. */
function createCallError(
  { requestId, method }: Exchange,
  failure: RpcError,
  permitHeaders: readonly string[],
  media: RpcMedia,
): HttpResponse {
  const headers = method === "GET" ? [...privateHeaders, ...permitHeaders] : permitHeaders;
  if (media.protocol !== "connect") {
    return statusResponse(requestId, failure, media, headers);
  }
  return media.isStream
    ? streamError(requestId, failure, headers, media.format)
    : unaryError(requestId, failure, headers);
}

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
  const message = readJsonBytes(input, bytes);
  return Buffer.from(toJsonString(input, message as never));
}

/**
 * Decodes the body of gRPC-Web text mode, for clients that read only text: base64 of separately padded pieces. Node.js
 * alone would stop at the first padding.
 */
function decodeText(text: Buffer): Buffer {
  const pieces = text.toString("latin1").match(/[^=]+={0,2}/g) ?? [];
  return Buffer.concat(pieces.map((piece) => Buffer.from(piece, "base64")));
}

const encodeText = {
  piece: (bytes: Uint8Array): Buffer => Buffer.from(Buffer.from(bytes).toString("base64")),

  /** Returns the headers with the content type of text mode: a flat list of names and values. */
  headers: (list: readonly string[]): string[] =>
    list.map((item) => item.replace(/^application\/grpc-web\b(?!-text)/, "application/grpc-web-text")),
};
