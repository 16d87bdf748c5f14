/**
 * Calls that the Connect library serves: streams of every protocol, compressed calls, and gRPC-Web in text or JSON.
 * Functions, gate and error catalog are the same as in every other protocol.
 */
import type { DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError, type ContextValues, createConnectRouter } from "@connectrpc/connect";
import type { Compression, UniversalHandler } from "@connectrpc/connect/protocol";
import { Readable } from "node:stream";
import { FairLimit } from "../../base/async/fair-limit.js";
import { decodeBase64 } from "../../base/text/base64.js";
import { readJsonBytes } from "../codec/json-request.js";
import { writeLibraryJson } from "../codec/library-json.js";
import { requestDecoder } from "../codec/request-rules.js";
import { RpcError } from "../errors.js";
import { checkIfMatch } from "../exchange/caching.js";
import type { HttpResponse, Exchange } from "../exchange/exchange.js";
import { corsHeaders, privateHeaders, statusResponse, streamHeaders } from "../exchange/responses.js";
import {
  firstPrefix,
  maxRequestBytes,
  prefixBytes,
  readOnlyMessage,
  type RpcMedia,
  type ServeRpc,
  timeoutHeaders,
  writeEnvelope,
} from "../exchange/rpc-requests.js";
import { type ServeDeps, serveExchange } from "../exchange/serve.js";
import type { Permit, ProtocolDeps } from "../gate.js";
import type { Call, ServedMethod } from "../service.js";
import { streamError, unaryError } from "./connect-error.js";
import { readGetQuery, writeGetQuery } from "./get-query.js";
import { connectRoutes, createLibraryCall, libraryOptions, valuesOf } from "./routes.js";

/**
 * Messages that are decompressed at the same time. A request of a few bytes may take the limit of a message, and Brotli a
 * window of up to 16 MiB in addition, which the bytes of the request do not cover.
 */
const decompressions = new FairLimit(2);

export function createLibraryHandler(deps: ProtocolDeps): ServeRpc {
  const router = createConnectRouter(libraryOptions);
  connectRoutes(deps)(router);
  const byPath = new Map<string, UniversalHandler>(router.handlers.map((handler) => [handler.requestPath, handler]));

  return (exchange, served, media) =>
    serveLibraryCall(exchange, served, media, deps, async (permit, call, contextValues) => {
      const { body, query, omittedHeaders } = await readLibraryRequest(exchange, served, media, permit, call);
      const head = toRequest(exchange, media, query);
      omittedHeaders.forEach((name) => head.header.delete(name));
      const request = { ...head, body, signal: call.signal, contextValues };
      await sendLibraryResponse(exchange, served, await byPath.get(exchange.path)!(request), media, permit);
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
        const libraryCall = createLibraryCall(exchange.requestId, served, call.signal);
        await run(permit, call, valuesOf(call.caller, libraryCall));
        permit.recordOutcome(libraryCall.failure);
        return undefined;
      },
      reject: (failure, headers) => createCallError(exchange, failure, headers, media),
    },
    deps,
  );
}

function toRequest(exchange: Exchange, { protocol, format }: RpcMedia, query: string) {
  const header = new Headers();
  for (const [name, value] of exchange.headerEntries()) {
    try {
      header.append(name, value);
    } catch {
      // The library reads no header with a name or value that it cannot represent.
    }
  }
  if (protocol !== "connect") {
    header.set("content-type", `application/${protocol}+${format}`);
  }
  return {
    httpVersion: exchange.isHttp2 ? "2.0" : "1.1",
    url: `http://localhost${exchange.path}${query === "" ? "" : `?${query}`}`,
    method: exchange.method,
    header,
  };
}

/**
 * Writes the library's response, each piece after the one before has been sent. Does nothing if the call has a response
 * already, because its deadline has passed.
 */
export async function sendLibraryResponse(
  exchange: Exchange,
  { desc }: ServedMethod,
  { status, header, body, trailer }: Awaited<ReturnType<UniversalHandler>>,
  media: RpcMedia,
  permit: Permit,
): Promise<void> {
  if (exchange.method === "GET") {
    checkIfMatch(exchange, undefined);
  }
  const headers = ["X-Request-Id", exchange.requestId, ...corsHeaders, ...permit.headers];
  if (desc.methodKind !== "unary") {
    headers.push(...streamHeaders);
  } else if (exchange.method === "GET") {
    headers.push(...privateHeaders);
  }
  header?.forEach((value, name) => headers.push(name, value));
  let hasStarted = false;
  const start = (): void => {
    if (!hasStarted) {
      hasStarted = true;
      exchange.start(status, media.isText ? encodeText.headers(headers) : headers);
    }
  };
  const isAnswered = (): boolean => exchange.isClosed || (exchange.headersSent && !hasStarted);
  for await (const piece of body ?? []) {
    if (isAnswered()) {
      return;
    }
    const bytes = media.isText ? encodeText.piece(piece) : piece;
    await exchange.writeReserved(permit, bytes, start);
  }
  if (isAnswered()) {
    return;
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

/** Request of a call, as the library may read it. */
export interface LibraryRequest {
  readonly body: AsyncIterable<Uint8Array>;
  readonly query: string;
  /** Names of headers that do not apply to this body. */
  readonly omittedHeaders: readonly string[];
}

/**
 * Reads a request. A single message is decompressed and decoded here first, so that its values and errors are the same in
 * every protocol. JSON is rewritten, because the library replaces what is not UTF-8, and does not know the words that
 * requests may use instead of numbers.
 *
 * @throws RpcError
 */
export async function readLibraryRequest(
  exchange: Exchange,
  { desc }: ServedMethod,
  { isStream, isText, format, protocol }: RpcMedia,
  permit: Permit,
  { caller }: Call,
): Promise<LibraryRequest> {
  const { query } = exchange;
  const omittedHeaders: readonly string[] = timeoutHeaders;
  const maxBytes = maxRequestBytes(desc);
  const isBidi = desc.methodKind === "bidi_streaming" && !isText;
  const decode = async (bytes: Uint8Array, encoding: string | undefined): Promise<Buffer> => {
    const compression = findCompression(encoding);
    if (compression === undefined) {
      return checkMessage(desc, format, bytes);
    }
    return await decompressions.run(caller.address, async () => {
      const message = await decompress(bytes, compression, maxBytes);
      // The messages of a bidirectional stream are read one after the other, and held no longer.
      if (!isBidi) {
        permit.reserveRequestBytes(message.length);
      }
      return checkMessage(desc, format, message);
    });
  };
  if (isBidi) {
    const chunks = exchange.readChunks();
    const encoding = exchange.header(encodingHeaders[protocol]);
    const known = isSupported(encoding) ? encoding : undefined;
    return {
      body: format === "json" ? decodeJsonMessages(chunks, maxBytes, known, decode) : chunks,
      query,
      omittedHeaders,
    };
  }
  if (exchange.method === "GET") {
    const { message, compression } = readGetQuery(query);
    const decoded = isSupported(compression) ? writeGetQuery(query, await decode(message, compression)) : query;
    return { body: Readable.from([]), query: decoded, omittedHeaders };
  }
  if (!isStream) {
    const sent = await exchange.readBytes(maxBytes, permit);
    const encoding = exchange.header("content-encoding");
    return isSupported(encoding)
      ? {
          body: Readable.from([await decode(sent, encoding)]),
          query,
          omittedHeaders: [...omittedHeaders, "content-encoding", "content-length"],
        }
      : { body: Readable.from([sent]), query, omittedHeaders };
  }
  const sent = await exchange.readBytes(2 * maxBytes, permit, isText ? undefined : firstPrefix(maxBytes));
  const bytes = isText ? decodeText(sent) : sent;
  const encoding = bytes[0] === 1 ? exchange.header(encodingHeaders[protocol]) : undefined;
  if (encoding === undefined || isSupported(encoding)) {
    if (findCompression(encoding) !== undefined) {
      bytes[0] = 0;
    }
    const message = writeEnvelope(0, await decode(readOnlyMessage(bytes, maxBytes), encoding));
    return { body: Readable.from([message]), query, omittedHeaders };
  }
  // The library rejects other encodings.
  return { body: Readable.from([bytes]), query, omittedHeaders };
}

/**
 * Decodes each message of a stream that is JSON. Other parts remain unchanged, for the library to reject.
 *
 * @param encoding compression of messages; undefined without one that the node supports.
 */
async function* decodeJsonMessages(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
  encoding: string | undefined,
  decode: (bytes: Uint8Array, encoding: string | undefined) => Promise<Buffer>,
): AsyncGenerator<Uint8Array> {
  let pending = Buffer.alloc(0);
  for await (const chunk of chunks) {
    pending = Buffer.concat([pending, chunk]);
    while (pending.length >= prefixBytes) {
      const flags = pending[0]!;
      const length = pending.readUInt32BE(1);
      const end = length > maxBytes ? pending.length : prefixBytes + length;
      if (pending.length < end) {
        break;
      }
      const sent = pending.subarray(0, end);
      pending = pending.subarray(end);
      const isReadable = length <= maxBytes && (flags === 0 || (flags === 1 && encoding !== undefined));
      const message = sent.subarray(prefixBytes);
      yield isReadable ? writeEnvelope(0, await decode(message, flags === 1 ? encoding : undefined)) : sent;
    }
  }
  yield pending;
}

/** Headers with the compression of messages that have an envelope. */
const encodingHeaders = {
  connect: "connect-content-encoding",
  grpc: "grpc-encoding",
  "grpc-web": "grpc-encoding",
} as const;

function isSupported(encoding: string | undefined): boolean {
  return encoding === undefined || encoding === "identity" || findCompression(encoding) !== undefined;
}

function findCompression(encoding: string | undefined): Compression | undefined {
  return libraryOptions.acceptCompression.find(({ name }) => name === encoding);
}

/**
 * Decompresses a message.
 *
 * @throws RpcError INVALID_REQUEST, PAYLOAD_TOO_LARGE
 */
async function decompress(bytes: Uint8Array, compression: Compression, maxBytes: number): Promise<Uint8Array> {
  try {
    return await compression.decompress(bytes, maxBytes);
  } catch (error) {
    throw ConnectError.from(error).code === Code.ResourceExhausted
      ? new RpcError("PAYLOAD_TOO_LARGE", `The message must not be larger than ${maxBytes} bytes.`)
      : new RpcError("INVALID_REQUEST", `The message is not compressed by ${compression.name}, as the request states.`);
  }
}

/**
 * Validates a message as in every other protocol, and returns it in the form that the library reads.
 *
 * @throws RpcError INVALID_REQUEST
 */
export function checkMessage({ input }: DescMethod, format: RpcMedia["format"], bytes: Uint8Array): Buffer {
  if (format === "proto") {
    requestDecoder(input)(bytes);
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  }
  return Buffer.from(writeLibraryJson(input, readJsonBytes(input, bytes)));
}

/**
 * Decodes the body of gRPC-Web text mode, for clients that read only text: base64 of separately padded pieces.
 *
 * @throws RpcError INVALID_REQUEST
 */
function decodeText(text: Buffer): Buffer {
  const pieces = text.toString("latin1").match(/[^=]*={0,2}/g) ?? [];
  const decoded = pieces.map(decodeBase64);
  if (decoded.includes(undefined)) {
    throw new RpcError("INVALID_REQUEST", "The body must be base64, as in every request of gRPC-Web text.");
  }
  return Buffer.concat(decoded as Uint8Array[]);
}

const encodeText = {
  piece: (bytes: Uint8Array): Buffer => Buffer.from(Buffer.from(bytes).toString("base64")),

  /** Returns the headers with the content type of text mode: a flat list of names and values. */
  headers: (list: readonly string[]): string[] =>
    list.map((item) => item.replace(/^application\/grpc-web\b(?!-text)/, "application/grpc-web-text")),
};
