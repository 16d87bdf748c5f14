/**
 * An HTTP/2 client that sends any frames, valid or not, and records the received ones. By itself it sends only the
 * preface, SETTINGS, acknowledgements of SETTINGS and pings, and WINDOW_UPDATE.
 */
import { once } from "node:events";
import { connect as connectPlain, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { encodeBlock, type Field } from "./hpack.js";
import {
  errorCodes,
  flags,
  type Frame,
  frameBytes,
  frameTypes,
  noBytes,
  numberBytes,
  settingsPayload,
} from "./http2-frames.js";
import { createIncoming, type IncomingOptions, type RawAnswer } from "./http2-incoming.js";

/** A connection. */
export interface RawHttp2 {
  readonly socket: Socket;
  /** Received frames in order, without DATA. */
  readonly frames: readonly Frame[];
  /** Sends raw bytes. */
  write(bytes: Buffer): void;
  /** Opens a stream with these header fields, and returns its number. */
  open(fields: readonly Field[], options?: { readonly endStream?: boolean }): number;
  data(streamId: number, bytes: Buffer, options?: { readonly endStream?: boolean }): void;
  reset(streamId: number, code?: number): void;
  windowUpdate(streamId: number, increment: number): void;
  settings(values: Readonly<Record<number, number>>): void;
  ping(payload?: Buffer): void;
  goAway(code?: number): void;
  /** Resolves once the stream has ended in any way. */
  answer(streamId: number): Promise<RawAnswer>;
  /** Opens a stream, sends the body in one or more frames, ends it, and resolves to the response. */
  request(fields: readonly Field[], ...frames: readonly Buffer[]): Promise<RawAnswer>;
  /** Returns the received data of a stream so far. */
  received(streamId: number): { readonly headers: Readonly<Record<string, string>>; readonly bodyBytes: number };
  /** Resolves once the connection is closed, to the code of the last GOAWAY. */
  readonly closed: Promise<number | undefined>;
  close(): void;
}

/** The settings of a connection. */
export interface RawOptions extends IncomingOptions {
  /** The trusted certificate; by default cleartext. */
  readonly ca?: Buffer;
  readonly alpn?: readonly string[];
  /** The source address; by default 127.0.0.1. */
  readonly localAddress?: string;
  /** Sent in the first SETTINGS, by number. */
  readonly settings?: Readonly<Record<number, number>>;
  /** Frames that are sent in one write with the preface and SETTINGS. */
  readonly beginning?: Buffer;
}

const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** Connects, and sends the preface and SETTINGS. */
export async function connectRawHttp2(port: number, options: RawOptions = {}): Promise<RawHttp2> {
  const { ca, alpn = ["h2"], localAddress = "127.0.0.1", settings = {}, beginning = noBytes } = options;
  const to = { port, host: "127.0.0.1", localAddress };
  const socket = ca === undefined ? connectPlain(to) : connectTls({ ...to, ca, ALPNProtocols: [...alpn] });
  socket.setNoDelay(true);
  await once(socket, ca === undefined ? "connect" : "secureConnect");
  socket.on("error", () => undefined);
  socket.write(Buffer.concat([preface, frameBytes(frameTypes.settings, 0, 0, settingsPayload(settings)), beginning]));
  return createConnection(socket, options);
}

function createConnection(socket: Socket, options: RawOptions): RawHttp2 {
  const incoming = createIncoming(socket, options);
  let nextStreamId = 1;
  const send = (...[type, flagBits, streamId, payload]: Parameters<typeof frameBytes>): void => {
    socket.write(frameBytes(type, flagBits, streamId, payload));
  };
  const connection: RawHttp2 = {
    socket,
    frames: incoming.frames,
    write: (bytes) => void socket.write(bytes),
    open(fields, { endStream = false } = {}) {
      const streamId = nextStreamId;
      nextStreamId += 2;
      const flagBits = flags.endHeaders | (endStream ? flags.endStream : 0);
      send(frameTypes.headers, flagBits, streamId, encodeBlock(fields, incoming.takeTableSize()));
      return streamId;
    },
    data: (streamId, bytes, { endStream = false } = {}) =>
      send(frameTypes.data, endStream ? flags.endStream : 0, streamId, bytes),
    reset: (streamId, code = errorCodes.cancel) => send(frameTypes.reset, 0, streamId, numberBytes(code)),
    windowUpdate: (streamId, increment) => send(frameTypes.windowUpdate, 0, streamId, numberBytes(increment)),
    settings: (values) => send(frameTypes.settings, 0, 0, settingsPayload(values)),
    ping: (payload = Buffer.alloc(8)) => send(frameTypes.ping, 0, 0, payload),
    goAway: (code = errorCodes.noError) =>
      send(frameTypes.goAway, 0, 0, Buffer.concat([numberBytes(0), numberBytes(code)])),
    answer: (streamId) => incoming.answer(streamId),
    request(fields, ...frames) {
      const streamId = connection.open(fields, { endStream: frames.length === 0 });
      frames.forEach((bytes, i) => connection.data(streamId, bytes, { endStream: i === frames.length - 1 }));
      return connection.answer(streamId);
    },
    received(streamId) {
      const { headers, bodyBytes } = incoming.stream(streamId);
      return { headers, bodyBytes };
    },
    closed: incoming.closed,
    close: () => socket.destroy(),
  };
  return connection;
}
