/**
 * HTTP/2 for clients that speak HTTP/1.1 as well, such as browsers and curl over TLS: on one connection they may ask for
 * plain paths and call gRPC. Each stream is carried, in memory, to the server that answers it on connections of its own
 * kind. Clients that speak HTTP/2 alone are gRPC clients, and never come by here.
 */
import { request as requestHttp } from "node:http";
import {
  type ClientHttp2Session,
  connect,
  constants,
  createServer,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { Socket } from "node:net";
import { duplexPair, type Duplex } from "node:stream";

/** What the front carries streams to. */
export interface Http2FrontParts {
  /** Takes a connection of HTTP/1.1. */
  readonly acceptHttp1: (socket: Duplex) => void;
  /** Takes a connection of HTTP/2 for gRPC. */
  readonly acceptGrpc: (socket: Duplex) => void;
  /** Header that tells the gRPC server the caller's address; nobody outside can know it. */
  readonly addressHeader: string;
}

export interface Http2Front {
  accept(socket: Socket): void;
  /** Takes no more streams, and ends each connection when those under way are answered. */
  drain(): void;
}

/** Most streams at a time of one connection. */
const maxStreams = 100;
/** How long a connection may be idle. */
const idleMs = 60_000;

/** One client's ways to the servers behind. */
interface Lanes {
  http1(): Duplex;
  grpc(): ClientHttp2Session;
}

export function createHttp2Front({ acceptHttp1, acceptGrpc, addressHeader }: Http2FrontParts): Http2Front {
  const sessions = new Map<ServerHttp2Session, Lanes>();
  const server = createServer({ settings: { maxConcurrentStreams: maxStreams, enablePush: false } });

  server.on("session", (session) => {
    const address = session.socket.remoteAddress;
    const remotePort = session.socket.remotePort;
    let grpc: ClientHttp2Session | undefined;
    const open = (accept: (socket: Duplex) => void): Duplex => {
      const [near, far] = duplexPair();
      accept(Object.assign(far, { remoteAddress: address, remotePort }));
      return near;
    };
    sessions.set(session, {
      http1: () => open(acceptHttp1),
      grpc() {
        if (grpc === undefined || grpc.closed || grpc.destroyed) {
          grpc = connect("http://localhost", { createConnection: () => open(acceptGrpc) });
          grpc.on("error", ignore);
        }
        return grpc;
      },
    });
    session.setTimeout(idleMs, () => session.close());
    session.on("error", ignore);
    session.once("close", () => {
      sessions.delete(session);
      grpc?.destroy();
    });
  });

  server.on("stream", (stream, headers) => {
    const lanes = sessions.get(stream.session as ServerHttp2Session);
    stream.on("error", ignore);
    if (lanes === undefined) {
      stream.close(constants.NGHTTP2_REFUSED_STREAM);
    } else if (/^application\/grpc(?![-\w])/.test(headers["content-type"] ?? "")) {
      carryGrpc(stream, { ...headers, [addressHeader]: stream.session?.socket.remoteAddress ?? "" }, lanes.grpc());
    } else {
      carryHttp(stream, headers, () => lanes.http1());
    }
  });

  return {
    accept: (socket) => void server.emit("connection", socket),
    drain: () => sessions.forEach((_, session) => session.close()),
  };
}

const ignore = (): void => undefined;

function carryGrpc(stream: ServerHttp2Stream, headers: OutgoingHttpHeaders, session: ClientHttp2Session): void {
  const inner = session.request(headers, { endStream: stream.endAfterHeaders });
  let trailers: IncomingHttpHeaders = {};
  inner.on("response", (answer, flags) => {
    const isWhole = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    if (!stream.destroyed) {
      stream.respond(answer, { endStream: isWhole, waitForTrailers: !isWhole });
    }
  });
  inner.on("trailers", (received: IncomingHttpHeaders) => {
    trailers = received;
  });
  inner.on("error", ignore);
  stream.on("wantTrailers", () => stream.sendTrailers(trailers));
  stream.pipe(inner);
  inner.pipe(stream);
  inner.once("close", () => {
    if (inner.rstCode !== constants.NGHTTP2_NO_ERROR) {
      stream.close(inner.rstCode);
    }
  });
  stream.once("close", () => inner.close(stream.rstCode));
}

function carryHttp(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, open: () => Duplex): void {
  const { ":method": method, ":path": path, ":authority": authority, ":scheme": _, ...rest } = headers;
  let inner: ReturnType<typeof requestHttp>;
  try {
    inner = requestHttp({
      createConnection: open,
      method: method ?? "GET",
      path: path ?? "/",
      headers: { host: authority ?? "localhost", ...rest, ...(!stream.endAfterHeaders && chunked(rest)) },
      setHost: false,
    });
  } catch {
    // A path or a header that HTTP/1.1 has no way to say.
    stream.respond({ ":status": 400 }, { endStream: true });
    return;
  }
  inner.on("response", (answer) => {
    if (stream.destroyed) {
      return;
    }
    const { connection: _connection, "keep-alive": _keepAlive, "transfer-encoding": _coding, ...kept } = answer.headers;
    stream.respond({ ":status": answer.statusCode ?? 500, ...kept });
    answer.pipe(stream);
  });
  inner.on("error", () => stream.close(constants.NGHTTP2_INTERNAL_ERROR));
  stream.pipe(inner);
  stream.once("close", () => inner.destroy());
}

/** A body without a length is one of pieces in HTTP/1.1. */
function chunked(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  return headers["content-length"] === undefined ? { "transfer-encoding": "chunked" } : {};
}
