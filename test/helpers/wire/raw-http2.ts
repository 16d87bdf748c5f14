/**
 * An HTTP/2 client that sends any frames, valid or not, and records the received ones. By itself it sends only the
 * preface, SETTINGS, acknowledgements of SETTINGS and pings, and WINDOW_UPDATE.
 */
import { once } from "node:events";
import { connect as connectPlain, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { encodeBlock, type Field, createBlockReader } from "./hpack.js";
import {
  errorCodes,
  flags,
  type Frame,
  frameBytes,
  frameTypes,
  noBytes,
  numberBytes,
  preface,
  settingsPayload,
  settingIds,
} from "./http2-frames.js";

/** A connection. */
export type RawHttp2 = Awaited<ReturnType<typeof connectRawHttp2>>;

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

/** Connects, and sends the preface and SETTINGS. */
export async function connectRawHttp2(port: number, options: RawOptions = {}) {
  const { ca, alpn = ["h2"], localAddress = "127.0.0.1", settings = {}, beginning = noBytes } = options;
  const to = { port, host: "127.0.0.1", localAddress };
  const socket = ca === undefined ? connectPlain(to) : connectTls({ ...to, ca, ALPNProtocols: [...alpn] });
  socket.setNoDelay(true);
  await once(socket, ca === undefined ? "connect" : "secureConnect");
  socket.on("error", () => undefined);
  socket.write(Buffer.concat([preface, frameBytes(frameTypes.settings, 0, 0, settingsPayload(settings)), beginning]));
  return createConnection(socket, options);
}

/** How a frame leaves its stream; by default open. */
interface StreamEnd {
  readonly endStream?: boolean;
}

function createConnection(socket: Socket, options: RawOptions) {
  const incoming = createIncoming(socket, options);
  let nextStreamId = 1;
  const send = (...[type, flagBits, streamId, payload]: Parameters<typeof frameBytes>): void => {
    socket.write(frameBytes(type, flagBits, streamId, payload));
  };
  const open = (fields: readonly Field[], { endStream = false }: StreamEnd = {}): number => {
    const streamId = nextStreamId;
    nextStreamId += 2;
    const flagBits = flags.endHeaders | (endStream ? flags.endStream : 0);
    send(frameTypes.headers, flagBits, streamId, encodeBlock(fields, incoming.takeTableSize()));
    return streamId;
  };
  const data = (streamId: number, bytes: Buffer, { endStream = false }: StreamEnd = {}): void =>
    send(frameTypes.data, endStream ? flags.endStream : 0, streamId, bytes);
  return {
    socket,
    /** Received frames in order, without DATA. */
    frames: incoming.frames,
    /** Sends raw bytes. */
    write: (bytes: Buffer): void => void socket.write(bytes),
    /** Opens a stream with these header fields, and returns its number. */
    open,
    data,
    reset: (streamId: number, code: number = errorCodes.cancel) =>
      send(frameTypes.reset, 0, streamId, numberBytes(code)),
    windowUpdate: (streamId: number, increment: number) =>
      send(frameTypes.windowUpdate, 0, streamId, numberBytes(increment)),
    settings: (values: Readonly<Record<number, number>>) => send(frameTypes.settings, 0, 0, settingsPayload(values)),
    ping: (payload: Buffer = Buffer.alloc(8)) => send(frameTypes.ping, 0, 0, payload),
    goAway: (code: number = errorCodes.noError) =>
      send(frameTypes.goAway, 0, 0, Buffer.concat([numberBytes(0), numberBytes(code)])),
    /** Resolves once the stream has ended in any way. */
    answer: (streamId: number) => incoming.answer(streamId),
    /** Opens a stream, sends the body in one or more frames, ends it, and resolves to the response. */
    request(fields: readonly Field[], ...frames: readonly Buffer[]): Promise<RawAnswer> {
      const streamId = open(fields, { endStream: frames.length === 0 });
      frames.forEach((bytes, i) => data(streamId, bytes, { endStream: i === frames.length - 1 }));
      return incoming.answer(streamId);
    },
    /** Returns the received data of a stream so far. */
    received(streamId: number): { readonly headers: Readonly<Record<string, string>>; readonly bodyBytes: number } {
      return incoming.stream(streamId);
    },
    /** Resolves once the connection is closed, to the code of the last GOAWAY. */
    closed: incoming.closed,
    close: () => socket.destroy(),
  };
}

/** The received data of a stream. */
export interface RawAnswer {
  /** Headers of the first block, without 1xx responses. */
  readonly headers: Readonly<Record<string, string>>;
  /** Headers of the last block, if there are two. */
  readonly trailers: Readonly<Record<string, string>> | undefined;
  readonly body: Buffer;
  /** The end of the stream: the flag END_STREAM, RST_STREAM with a code, or the end of the connection. */
  readonly end: "stream" | "reset" | "connection";
  readonly resetCode: number | undefined;
}

/** The reactions to received frames. */
export interface IncomingOptions {
  /** True to send WINDOW_UPDATE for received data (default). Otherwise the windows run out. */
  readonly replenish?: boolean;
  /** True to acknowledge SETTINGS and pings (default). */
  readonly acknowledge?: boolean;
  /** Called for each received frame. */
  readonly onFrame?: (frame: Frame) => void;
}

/** The state of a stream. */
interface Incoming {
  headers: Record<string, string>;
  trailers: Record<string, string> | undefined;
  readonly chunks: Buffer[];
  bodyBytes: number;
  end: RawAnswer["end"] | undefined;
  resetCode: number | undefined;
  readonly waiting: (() => void)[];
}

/** Reads frames from a socket. */
export function createIncoming(socket: Socket, { replenish = true, acknowledge = true, onFrame }: IncomingOptions) {
  const frames: Frame[] = [];
  const streams = new Map<number, Incoming>();
  const readBlock = createBlockReader();
  let unread: Buffer = noBytes;
  let [block, blockFlags]: [Buffer, number] = [noBytes, 0];
  let goAwayCode: number | undefined;
  let tableSizeBytes: number | undefined;

  const streamOf = (streamId: number): Incoming => {
    let stream = streams.get(streamId);
    if (stream === undefined) {
      const fresh = { headers: {}, trailers: undefined, chunks: [], bodyBytes: 0, resetCode: undefined, waiting: [] };
      stream = { ...fresh, end: socket.closed ? "connection" : undefined };
      streams.set(streamId, stream);
    }
    return stream;
  };
  const finish = (stream: Incoming, end: RawAnswer["end"]): void => {
    stream.end ??= end;
    stream.waiting.splice(0).forEach((go) => go());
  };
  const takeBlock = (stream: Incoming): void => {
    const fields = Object.fromEntries(readBlock(block));
    if (Object.keys(stream.headers).length === 0) {
      stream.headers = /^1/.test(fields[":status"] ?? "") ? {} : fields;
    } else {
      stream.trailers = fields;
    }
    if (blockFlags & flags.endStream) {
      finish(stream, "stream");
    }
  };
  const takeData = (stream: Incoming, { payload, flags: flagBits, streamId }: Frame): void => {
    stream.chunks.push(payload);
    stream.bodyBytes += payload.length;
    if (replenish && payload.length > 0) {
      const more = numberBytes(payload.length);
      socket.write(frameBytes(frameTypes.windowUpdate, 0, 0, more));
      socket.write(frameBytes(frameTypes.windowUpdate, 0, streamId, more));
    }
    if (flagBits & flags.endStream) {
      finish(stream, "stream");
    }
  };
  const take = (frame: Frame): void => {
    const { type, streamId, payload } = frame;
    switch (type) {
      case frameTypes.data:
        takeData(streamOf(streamId), frame);
        break;
      case frameTypes.headers:
      case frameTypes.continuation:
        [block, blockFlags] =
          type === frameTypes.headers ? [payload, frame.flags] : [Buffer.concat([block, payload]), blockFlags];
        if (frame.flags & flags.endHeaders) {
          takeBlock(streamOf(streamId));
        }
        break;
      case frameTypes.reset:
        streamOf(streamId).resetCode = payload.readUInt32BE(0);
        finish(streamOf(streamId), "reset");
        break;
      case frameTypes.goAway:
        goAwayCode = payload.readUInt32BE(4);
        break;
      case frameTypes.settings:
      case frameTypes.ping:
        if (acknowledge && !(frame.flags & flags.ack)) {
          socket.write(frameBytes(type, flags.ack, 0, type === frameTypes.ping ? payload : noBytes));
          tableSizeBytes = type === frameTypes.settings ? tableSizeOf(payload) : tableSizeBytes;
        }
        break;
    }
    if (type !== frameTypes.data) {
      frames.push(frame);
    }
    onFrame?.(frame);
  };
  socket.on("data", (bytes: Buffer) => {
    unread = unread.length === 0 ? bytes : Buffer.concat([unread, bytes]);
    while (unread.length >= 9) {
      const end = 9 + unread.readUIntBE(0, 3);
      if (unread.length < end) {
        break;
      }
      const [type, flagBits, streamId] = [unread[3]!, unread[4]!, unread.readUInt32BE(5) & 0x7fffffff];
      const payload = unread.subarray(9, end);
      unread = unread.subarray(end);
      take({ type, flags: flagBits, streamId, payload });
    }
  });
  const closed = new Promise<number | undefined>((resolve) => {
    socket.once("close", () => {
      streams.forEach((stream) => finish(stream, "connection"));
      resolve(goAwayCode);
    });
  });
  return {
    frames: frames as readonly Frame[],
    closed,
    stream: streamOf,
    /** The requested size of the header table, which the next block must confirm. */
    takeTableSize(): number | undefined {
      const taken = tableSizeBytes;
      tableSizeBytes = undefined;
      return taken;
    },
    async answer(streamId: number): Promise<RawAnswer> {
      const stream = streamOf(streamId);
      if (stream.end === undefined) {
        await new Promise<void>((resolve) => stream.waiting.push(resolve));
      }
      const { headers, trailers, chunks, end, resetCode } = stream;
      return { headers, trailers, body: Buffer.concat(chunks), end: end!, resetCode };
    },
  };
}

/** Returns the header table size in SETTINGS. */
function tableSizeOf(payload: Buffer): number | undefined {
  for (let at = 0; at < payload.length; at += 6) {
    if (payload.readUInt16BE(at) === settingIds.headerTableSize) {
      return payload.readUInt32BE(at + 2);
    }
  }
  return undefined;
}
