/** The node's log: structured lines on stderr, and the two buffers that the node serves. */
import pino, { type DestinationStream, type StreamEntry } from "pino";
import type * as PinoPretty from "pino-pretty";
import type { LogLevelName } from "./log-levels.js";
import { lazyRequire } from "../async/lazy-require.js";
import { type LogDestination, openLogDestination } from "./log-destination.js";
import { createLogBuffers, type LogBuffers } from "./log-buffer.js";

/**
 * Writes log lines. A field `subsystem` names who writes; `public: true` also puts the message, and nothing else of the
 * line, into the public log buffer.
 */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface LoggingSettings {
  readonly level: LogLevelName;
  /** Lines of JSON; otherwise lines for people where stderr is a terminal. */
  readonly json: boolean;
  /** Where lines go; stderr when left out. */
  readonly destination?: DestinationStream;
}

export interface Logging extends LogBuffers {
  readonly log: Logger;
  /** How many lines could not be written. */
  readonly lost: () => number;
}

/** Names of fields that never leave the process, at the top of a line or one level down. */
const secretNames = ["signature", "authorization", "cookie", "identity", "privateKey", "seed", "password", "token"];

/** For terminals alone. */
const pretty = lazyRequire<typeof PinoPretty>("pino-pretty");

/** One for the process, however many nodes are in it. */
let stderr: LogDestination | undefined;

export function createLogging({ level, json, destination }: LoggingSettings): Logging {
  const buffers = createLogBuffers();
  stderr ??= openLogDestination(2);
  const toTerminal = destination ?? (json || !process.stderr.isTTY ? stderr : forPeople(stderr));
  // The buffers are part of the interface: they fill at info and above, whatever level the terminal shows.
  const streams: StreamEntry[] = [{ level: "info", stream: { write: (line: string) => buffers.write(line) } }];
  if (level !== "silent") {
    streams.push({ level, stream: toTerminal });
  }
  const log = pino(
    {
      level: level === "trace" || level === "debug" ? level : "info",
      base: null,
      redact: { paths: secretNames.flatMap((name) => [name, `*.${name}`]), censor: "[redacted]" },
    },
    pino.multistream(streams),
  );
  return {
    log,
    publicLines: () => buffers.publicLines(),
    diagnosticLines: () => buffers.diagnosticLines(),
    lost: () => stderr?.lost() ?? 0,
  };
}

/** Lines as people read them. */
function forPeople(destination: LogDestination): DestinationStream {
  const format = pretty().prettyFactory({ ignore: "public", translateTime: "SYS:HH:MM:ss.l" });
  return { write: (line) => destination.write(format(line)) };
}
