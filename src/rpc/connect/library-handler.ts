/**
 * Serves what has no path of its own, by the library of Connect: streams of every protocol, gRPC-Web, and compressed
 * calls. The functions, the gate and the catalogue are those of every other protocol.
 */
import {
  Code,
  type ConnectRouter,
  ConnectError,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
  type ServiceImpl,
} from "@connectrpc/connect";
import type { UniversalHandler, UniversalServerRequest } from "@connectrpc/connect/protocol";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import type { DescService } from "@bufbuild/protobuf";
import { jsonNameOf, type NameOf, protoNameOf, requestRules } from "../codec/request-rules.js";
import { Failure } from "../errors.js";
import { forCallerAlone } from "../exchange/caching.js";
import { corsHeaders } from "../exchange/cors.js";
import { maxMessageBytes } from "../exchange/envelope.js";
import type { Answer, Exchange } from "../exchange/exchange.js";
import type { RpcMedia } from "../exchange/media-type.js";
import { failureHeaders } from "../exchange/reply.js";
import type { ServeRpc } from "../exchange/rpc-paths.js";
import { deadlineExceeded, serve } from "../exchange/serve.js";
import { takeTurn } from "../exchange/turns.js";
import { writeCharged } from "../exchange/write-charged.js";
import { explain, type Lease, type ProtocolParts } from "../gate.js";
import { statusFields } from "../grpc-status.js";
import type { Call, Caller, ServedMethod, ServedService } from "../service.js";
import { streamFailure, toConnectError, unaryFailure } from "./connect-error.js";
import { encodeText } from "./grpc-web-text.js";
import { readLibraryBody } from "./library-body.js";

/** A call on its way through the library. */
interface Passage {
  readonly caller: Caller;
  /** The name by which it gives a field. */
  readonly nameOf: NameOf;
  /** Why it is not answered well; undefined once the function gave an answer. */
  failure: Failure | undefined;
  /** Keeps what was thrown as the failure, and gives it as the library wants it. */
  fail(thrown: unknown): ConnectError;
}

const passageKey = createContextKey<Passage | undefined>(undefined);

export function createLibraryHandler(parts: ProtocolParts): ServeRpc {
  const router = createConnectRouter({
    acceptCompression: [compressionGzip, compressionBrotli],
    readMaxBytes: maxMessageBytes,
    jsonOptions: { ignoreUnknownFields: true },
  });
  for (const service of parts.services) {
    register(router, service);
  }
  const byPath = new Map<string, UniversalHandler>(router.handlers.map((handler) => [handler.requestPath, handler]));

  return (exchange, served, media) => {
    const handle = byPath.get(exchange.path)!;
    serve(
      exchange,
      {
        protocol: media.protocol,
        method: served,
        async respond(lease, call) {
          const passage = createPassage(exchange, served, call, media, parts);
          const body = await readLibraryBody(exchange, served, media, lease);
          const response = await handle(toRequest(exchange, media, call, passage, body));
          await send(exchange, response, media, lease);
          lease.settle(passage.failure);
          return undefined;
        },
        refuse: (failure, headers) =>
          refusal(
            exchange.requestId,
            failure,
            exchange.method === "GET" ? [...forCallerAlone, ...headers] : headers,
            media,
          ),
      },
      parts,
    );
  };
}

function createPassage(
  { requestId }: Exchange,
  served: ServedMethod,
  call: Call,
  { format }: RpcMedia,
  parts: ProtocolParts,
): Passage {
  const passage: Passage = {
    caller: call.caller,
    nameOf: format === "proto" ? protoNameOf : jsonNameOf,
    // What the library refuses by itself never gets to the function, which is the one to say that there is no failure.
    failure: new Failure("INVALID_REQUEST", `The request is not a valid ${served.desc.input.typeName}.`),
    fail(thrown) {
      passage.failure = explain(thrown, requestId, parts);
      return toConnectError(passage.failure);
    },
  };
  return passage;
}

function toRequest(
  exchange: Exchange,
  { protocol, format }: RpcMedia,
  call: Call,
  passage: Passage,
  body: AsyncIterable<Uint8Array>,
): UniversalServerRequest {
  const header = new Headers();
  for (const [name, value] of exchange.headerEntries()) {
    try {
      header.append(name, value);
    } catch {
      // A name or value that the library has no way to say is not one that it asks for.
    }
  }
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
    contextValues: createContextValues().set(passageKey, passage),
  };
}

/** Writes what the library answers, piece by piece, each when the one before is gone. */
async function send(
  exchange: Exchange,
  { status, header, body, trailer }: Awaited<ReturnType<UniversalHandler>>,
  media: RpcMedia,
  lease: Lease,
): Promise<void> {
  const headers = ["X-Request-Id", exchange.requestId, ...corsHeaders, ...lease.headers];
  if (exchange.method === "GET") {
    headers.push(...forCallerAlone);
  }
  header?.forEach((value, name) => headers.push(name, value));
  const begin = (): void => exchange.begin(status, media.isText ? encodeText.headers(headers) : headers);
  for await (const piece of body ?? []) {
    const bytes = media.isText ? encodeText.piece(piece) : piece;
    await writeCharged(exchange, lease, bytes, begin);
    if (exchange.isClosed) {
      return;
    }
  }
  begin();
  const trailers: string[] = [];
  trailer?.forEach((value, name) => trailers.push(name, value));
  exchange.finish(trailers);
}

/** The answer to a call that the gate turned away, or that went wrong outside of the library. */
function refusal(
  requestId: string,
  failure: Failure,
  headers: readonly string[],
  { protocol, format, isStream, isText }: RpcMedia,
): Answer {
  if (protocol === "connect") {
    return isStream ? streamFailure(requestId, failure, headers, format) : unaryFailure(requestId, failure, headers);
  }
  const fields = statusFields(failure, requestId);
  const contentType = ["Content-Type", `application/${protocol}${isText ? "-text" : ""}+${format}`];
  return protocol === "grpc"
    ? { status: 200, headers: contentType, trailers: fields }
    : { status: 200, headers: [...contentType, ...corsHeaders, ...headers, ...fields, ...failureHeaders(failure)] };
}

function register(router: ConnectRouter, { desc, methods }: ServedService): void {
  const functions = methods.map((method) => [
    method.desc.localName,
    method.desc.methodKind === "unary" ? unary(method) : stream(method),
  ]);
  router.service(desc, Object.fromEntries(functions) as ServiceImpl<DescService>);
}

function unary(served: ServedMethod) {
  return async (request: object, context: HandlerContext): Promise<object> => {
    const passage = context.values.get(passageKey)!;
    try {
      requestRules(served.desc.input)(request, passage.nameOf);
      const answer = await Promise.race([
        Promise.resolve(served.invoke(request, { caller: passage.caller, signal: context.signal })),
        untilDeadline(context.signal),
      ]);
      passage.failure = undefined;
      return answer;
    } catch (error) {
      throw passage.fail(error);
    }
  };
}

function stream(served: ServedMethod) {
  return async function* (request: object, context: HandlerContext): AsyncGenerator<object> {
    const passage = context.values.get(passageKey)!;
    const { signal } = context;
    try {
      passage.failure = undefined;
      if (served.desc.methodKind === "server_streaming") {
        requestRules(served.desc.input)(request, passage.nameOf);
      }
      const messages = served.invoke(request, { caller: passage.caller, signal }) as AsyncIterable<object>;
      for await (const message of messages) {
        // Each is encoded in a turn of its own, since nobody knows how large it is.
        await takeTurn();
        yield message;
      }
      if (isPastDeadline(signal)) {
        throw deadlineExceeded();
      }
    } catch (error) {
      throw passage.fail(error);
    }
  };
}

/** Rejects at the caller's deadline; otherwise it never settles. */
async function untilDeadline(signal: AbortSignal): Promise<never> {
  return await new Promise((_resolve, reject) => {
    const look = (): void => (isPastDeadline(signal) ? reject(deadlineExceeded()) : undefined);
    if (signal.aborted) {
      look();
    } else {
      signal.addEventListener("abort", look, { once: true });
    }
  });
}

function isPastDeadline({ reason }: AbortSignal): boolean {
  return reason instanceof ConnectError && reason.code === Code.DeadlineExceeded;
}
