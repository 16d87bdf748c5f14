/**
 * The log buffers that the node serves. They take log lines as the log wrote them, so after redaction, and keep of each
 * only what the contract shows: no field of a line but its message ever gets here, and no caller's address.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { isIP } from "node:net";
import { maxListBytes, estimateBytes } from "../limits/response-limits.js";
import {
  type DiagnosticLineSchema,
  LogLevel,
  type PublicLogLineSchema,
} from "../../../gen/gatehouse/info/v1/info_pb.js";

/** Most lines of the buffers; there are fewer where they are so long that one answer would not hold them. */
export const maxPublicLines = 500;
export const maxDiagnosticLines = 1_000;
const maxMessageLength = 2_000;

export type PublicLine = MessageInitShape<typeof PublicLogLineSchema>;
export type DiagnosticLine = MessageInitShape<typeof DiagnosticLineSchema>;

/** Reads of the buffers, oldest line first. */
export interface LogBuffers {
  readonly publicLines: () => PublicLine[];
  readonly diagnosticLines: () => DiagnosticLine[];
}

interface LoggedLine {
  readonly level: number;
  readonly time: number;
  readonly msg?: string;
  readonly subsystem?: unknown;
  readonly public?: unknown;
  /** A line of the access log, which would push everything else out. */
  readonly access?: unknown;
}

/** Empty buffers. `write` takes one line of newline-delimited JSON as pino writes it. */
export function createLogBuffers(): LogBuffers & { write(line: string): void } {
  const publicRing = createRing<PublicLine>(maxPublicLines);
  const diagnosticRing = createRing<DiagnosticLine>(maxDiagnosticLines);
  return {
    write(text) {
      const line = JSON.parse(text) as LoggedLine;
      if (line.access === true) {
        return;
      }
      const timeMs = BigInt(line.time);
      const level = levels.get(line.level) ?? LogLevel.INFO;
      const message = withoutAddresses(line.msg ?? "").slice(0, maxMessageLength);
      const subsystem = typeof line.subsystem === "string" ? line.subsystem : undefined;
      diagnosticRing.push({ timeMs, level, subsystem, message });
      if (line.public === true) {
        publicRing.push({ timeMs, level, message });
      }
    },
    publicLines: () => publicRing.items(),
    diagnosticLines: () => diagnosticRing.items(),
  };
}

const levels = new Map<number, LogLevel>([
  [10, LogLevel.TRACE],
  [20, LogLevel.DEBUG],
  [30, LogLevel.INFO],
  [40, LogLevel.WARN],
  [50, LogLevel.ERROR],
  [60, LogLevel.FATAL],
]);

/** Messages are written without addresses; this keeps out those that a library puts into an error's message. */
function withoutAddresses(message: string): string {
  return message
    .replace(/[0-9a-f]*:[0-9a-f:]*:(?:(?:\d+\.){3}\d+|[0-9a-f]*)/gi, (text) => (isIP(text) === 6 ? "[address]" : text))
    .replace(/\b(?:\d{1,3}\.){3}\d{1,3}\b/g, "[address]");
}

/** The last items: at most so many, and of no more bytes than one answer holds. */
function createRing<T extends object>(capacity: number): { push(item: T): void; items(): T[] } {
  const slots: { readonly item: T; readonly bytes: number }[] = [];
  let heldBytes = 0;
  return {
    push(item) {
      const bytes = estimateBytes(item);
      while (slots.length >= capacity || (slots.length > 0 && heldBytes + bytes > maxListBytes)) {
        heldBytes -= slots.shift()!.bytes;
      }
      slots.push({ item, bytes });
      heldBytes += bytes;
    },
    items: () => slots.map(({ item }) => item),
  };
}
