/** The node's log: structured lines on stderr, and the two buffers that the node serves. */
import pino, { type DestinationStream, type StreamEntry } from "pino";
import pretty from "pino-pretty";
import { createLogBuffers, type LogBuffers } from "./log-buffer.js";

/** Levels of `--log-level`. */
export const logLevels = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;

export type LogLevelName = (typeof logLevels)[number];

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
}

/** Names of fields that never leave the process, at the top of a line or one level down. */
const secretNames = ["signature", "authorization", "cookie", "identity", "privateKey", "seed", "password", "token"];

export function createLogging({ level, json, destination }: LoggingSettings): Logging {
  const buffers = createLogBuffers();
  const toTerminal = destination ?? openStderr(json);
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
  return { log, publicLines: () => buffers.publicLines(), diagnosticLines: () => buffers.diagnosticLines() };
}

/** What cannot be written is kept up to this, for the case that it can be later. */
const mostUnwrittenBytes = 1_048_576;

/** In this process and synchronous: a line is out when the call returns, also when the process dies right after. */
function openStderr(json: boolean): DestinationStream {
  const stderr = pino.destination({ dest: 2, sync: true, maxLength: mostUnwrittenBytes });
  // A terminal that was closed, or a full disk, ends the log and not the node.
  stderr.on("error", () => undefined);
  return json || !process.stderr.isTTY
    ? stderr
    : pretty({ destination: stderr, sync: true, ignore: "public", translateTime: "SYS:HH:MM:ss.l" });
}
