/**
 * Calls that the Connect library serves: streams of every protocol, gRPC-Web, and compressed calls. Functions, gate and
 * error catalog are the same as in every other protocol.
 */
import { createConnectRouter } from "@connectrpc/connect";
import type { UniversalHandler, UniversalServerRequest } from "@connectrpc/connect/protocol";
import type { RpcError } from "../errors.js";
import type { HttpResponse, Exchange } from "../exchange/exchange.js";
import { corsHeaders, errorHeaders, privateHeaders } from "../exchange/responses.js";
import { longTimeouts, type RpcMedia, type ServeRpc } from "../exchange/rpc-requests.js";
import { serveExchange } from "../exchange/serve.js";
import type { Permit, ProtocolDeps } from "../gate.js";
import { statusFields } from "../grpc-status.js";
import type { Call } from "../service.js";
import { streamError, unaryError } from "./connect-error.js";
import { encodeText } from "./grpc-web-text.js";
import { readLibraryBody } from "./library-body.js";
import { connectRoutes, createLibraryCall, libraryOptions, type LibraryCall, valuesOf } from "./routes.js";

export function createLibraryHandler(deps: ProtocolDeps): ServeRpc {
  const router = createConnectRouter(libraryOptions);
  connectRoutes(deps)(router);
  const byPath = new Map<string, UniversalHandler>(router.handlers.map((handler) => [handler.requestPath, handler]));

  return (exchange, served, media) => {
    const handle = byPath.get(exchange.path)!;
    serveExchange(
      exchange,
      {
        protocol: media.protocol,
        method: served,
        async respond(permit, call) {
          const libraryCall = createLibraryCall(exchange.requestId, served, media);
          const body = await readLibraryBody(exchange, served, media, permit);
          const response = await handle(toRequest(exchange, media, call, libraryCall, body));
          await send(exchange, response, media, permit);
          permit.recordOutcome(libraryCall.failure);
          return undefined;
        },
        reject: (failure, headers) => createCallError(exchange, failure, headers, media),
      },
      deps,
    );
  };
}

function toRequest(
  exchange: Exchange,
  { protocol, format }: RpcMedia,
  call: Call,
  libraryCall: LibraryCall,
  body: AsyncIterable<Uint8Array>,
): UniversalServerRequest {
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
    body,
    signal: call.signal,
    contextValues: valuesOf(call.caller, libraryCall),
  };
}

/** Writes the library's response, each piece after the one before has been sent. */
async function send(
  exchange: Exchange,
  { status, header, body, trailer }: Awaited<ReturnType<UniversalHandler>>,
  media: RpcMedia,
  permit: Permit,
): Promise<void> {
  const headers = libraryHeaders(exchange, permit);
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

/** Returns the additional headers of a library response: a flat list of names and values. */
export function libraryHeaders({ requestId, method }: Exchange, { headers }: Permit): string[] {
  return ["X-Request-Id", requestId, ...corsHeaders, ...headers, ...(method === "GET" ? privateHeaders : [])];
}

/** Returns the error response of a call that was rejected by the gate, or that failed outside the library. */
export function createCallError(
  { requestId, method }: Exchange,
  failure: RpcError,
  permitHeaders: readonly string[],
  { protocol, format, isStream, isText }: RpcMedia,
): HttpResponse {
  const headers = method === "GET" ? [...privateHeaders, ...permitHeaders] : permitHeaders;
  if (protocol === "connect") {
    return isStream ? streamError(requestId, failure, headers, format) : unaryError(requestId, failure, headers);
  }
  const fields = statusFields(failure, requestId);
  const contentType = ["Content-Type", `application/${protocol}${isText ? "-text" : ""}+${format}`];
  return protocol === "grpc"
    ? { status: 200, headers: contentType, trailers: fields }
    : { status: 200, headers: [...contentType, ...corsHeaders, ...headers, ...fields, ...errorHeaders(failure)] };
}
