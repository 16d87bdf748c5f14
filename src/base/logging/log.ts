/** The node's log: structured lines on stderr, and the two buffers that the node serves. */
import pino, { type DestinationStream, type StreamEntry } from "pino";
import type * as PinoPretty from "pino-pretty";
import type { LogLevelName } from "./log-levels.js";
import { lazyRequire } from "../async/lazy-require.js";
import { type LogDestination, openLogDestination } from "./log-destination.js";
import { createLogBuffers } from "./log-buffer.js";

/**
 * Writes log lines. The field `subsystem` names the source; `public: true` also puts the message, and no other field,
 * into the public log buffer.
 */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface LoggingSettings {
  readonly level: LogLevelName;
  /** True for lines of JSON; false for readable text if stderr is a terminal. */
  readonly json: boolean;
  /** Destination of lines. Default: stderr. */
  readonly destination?: DestinationStream;
}

export type Logging = ReturnType<typeof createLogging>;

/** Names of fields that are redacted, at the top level of a line or one level below. */
const secretNames = ["signature", "authorization", "cookie", "identity", "privateKey", "seed", "password", "token"];

/** Needed only for terminals, so loaded on first use. */
const pretty = lazyRequire<typeof PinoPretty>("pino-pretty");

/** Destination that every node in the process shares. */
let stderr: LogDestination | undefined;

export function createLogging({ level, json, destination }: LoggingSettings) {
  const buffers = createLogBuffers();
  stderr ??= openLogDestination(2);
  const lineDestination = destination ?? (json || !process.stderr.isTTY ? stderr : asReadableText(stderr));
  // The buffers are part of the API: they contain level info and above, regardless of the level on the terminal.
  const streams: StreamEntry[] = [{ level: "info", stream: { write: (line: string) => buffers.write(line) } }];
  if (level !== "silent") {
    streams.push({ level, stream: lineDestination });
  }
  const log: Logger = pino(
    {
      level: level === "trace" || level === "debug" ? level : "info",
      base: null,
      redact: { paths: secretNames.flatMap((name) => [name, `*.${name}`]), censor: "[redacted]" },
    },
    pino.multistream(streams),
  );
  return {
    log,
    publicLines: buffers.publicLines,
    diagnosticLines: buffers.diagnosticLines,
    lost: () => stderr?.lost() ?? 0,
  };
}

function asReadableText(destination: LogDestination): DestinationStream {
  const format = pretty().prettyFactory({ ignore: "public", translateTime: "SYS:HH:MM:ss.l" });
  return { write: (line) => destination.write(format(line)) };
}
