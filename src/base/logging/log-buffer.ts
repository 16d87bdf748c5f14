/**
 * Log buffers that the node serves. They receive lines after redaction, and store only what the API shows: no field
 * except the message, level, time and subsystem, and no address of a caller.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { isIP } from "node:net";
import { maxListBytes, estimateBytes } from "../limits/response-limits.js";
import {
  type DiagnosticLineSchema,
  LogLevel,
  type PublicLogLineSchema,
} from "../../../gen/gatehouse/info/v1/info_pb.js";

/** Limits on lines of the buffers. Fewer are stored if they would not fit into one response. */
export const maxPublicLines = 500;
export const maxDiagnosticLines = 1_000;
const maxMessageLength = 2_000;

export type PublicLine = MessageInitShape<typeof PublicLogLineSchema>;
export type DiagnosticLine = MessageInitShape<typeof DiagnosticLineSchema>;

interface LoggedLine {
  readonly level: number;
  readonly time: number;
  readonly msg?: string;
  readonly subsystem?: unknown;
  readonly public?: unknown;
  /** True for a line of the access log, which is left out because it would displace all other lines. */
  readonly access?: unknown;
}

/** Creates empty buffers. Their lines are read oldest first. */
export function createLogBuffers() {
  const publicRing = createRing<PublicLine>(maxPublicLines);
  const diagnosticRing = createRing<DiagnosticLine>(maxDiagnosticLines);
  return {
    /** Takes one line of newline-delimited JSON as pino writes it. */
    write(text: string) {
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

/** Replaces IP addresses. The node writes none into messages, but error messages of libraries may contain some. */
function withoutAddresses(message: string): string {
  return message
    .replace(/[0-9a-f]*:[0-9a-f:]*:(?:(?:\d+\.){3}\d+|[0-9a-f]*)/gi, (text) => (isIP(text) === 6 ? "[address]" : text))
    .replace(/\b(?:\d{1,3}\.){3}\d{1,3}\b/g, "[address]");
}

/** Creates a ring of the latest items, limited in number and to the bytes that fit into one response. */
function createRing<T extends object>(capacity: number): { push(item: T): void; items(): T[] } {
  const slots: { readonly item: T; readonly bytes: number }[] = [];
  let bufferedBytes = 0;
  return {
    push(item) {
      const bytes = estimateBytes(item);
      while (slots.length >= capacity || (slots.length > 0 && bufferedBytes + bytes > maxListBytes)) {
        bufferedBytes -= slots.shift()!.bytes;
      }
      slots.push({ item, bytes });
      bufferedBytes += bytes;
    },
    items: () => slots.map(({ item }) => item),
  };
}
