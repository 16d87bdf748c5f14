/** Common parts of gRPC, gRPC-Web and Connect requests: content types, paths, timeouts and message framing. */
import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { http } from "../../../gen/google/api/annotations_pb.js";
import { RpcError } from "../errors.js";
import type { Protocol } from "../gate.js";
import type { ServedMethod, ServedService } from "../service.js";
import { type EarlyCheck, maxBodyBytes } from "./body.js";
import type { Exchange } from "./exchange.js";

export interface RpcMedia {
  readonly protocol: "grpc" | "grpc-web" | "connect";
  readonly format: "proto" | "json";
  /** True if messages have envelopes; false if the body is the message. */
  readonly isStream: boolean;
  /** True if the body is base64, as in gRPC-Web text. */
  readonly isText: boolean;
}

/** Content types of the protocols. The node serves gRPC itself only with protobuf. */
const mediaByType: ReadonlyMap<string, RpcMedia> = new Map(
  (
    [
      ["grpc", "grpc", "proto", "stream"],
      ["grpc+proto", "grpc", "proto", "stream"],
      ["grpc-web", "grpc-web", "proto", "stream"],
      ["grpc-web+proto", "grpc-web", "proto", "stream"],
      ["grpc-web+json", "grpc-web", "json", "stream"],
      ["grpc-web-text", "grpc-web", "proto", "text"],
      ["grpc-web-text+proto", "grpc-web", "proto", "text"],
      ["connect+proto", "connect", "proto", "stream"],
      ["connect+json", "connect", "json", "stream"],
      ["proto", "connect", "proto", "message"],
      ["json", "connect", "json", "message"],
    ] as const
  ).map(([type, protocol, format, form]) => [
    `application/${type}`,
    { protocol, format, isStream: form !== "message", isText: form === "text" },
  ]),
);

/** Parses a Content-Type in any case, ignoring parameters; undefined if no protocol matches. */
export function readRpcMedia(contentType: string | undefined): RpcMedia | undefined {
  if (contentType === undefined) {
    return undefined;
  }
  return mediaByType.get(contentType) ?? mediaByType.get(contentType.split(";", 1)[0]!.trim().toLowerCase());
}

export type ServeRpc = (exchange: Exchange, served: ServedMethod, media: RpcMedia) => void;

/** Returns every rpc by its path. */
export function methodsByPath(services: readonly ServedService[]): ReadonlyMap<string, ServedMethod> {
  return new Map(
    services.flatMap(({ methods }) =>
      methods.map((method) => [`/${method.desc.parent.typeName}/${method.desc.name}`, method] as const),
    ),
  );
}

/** Headers with which clients set the timeout of a call, by protocol. The other protocols have none. */
const timeouts = {
  grpc: { name: "grpc-timeout", form: /^(\d{1,10})([HMSmun])$/, expected: "at most ten digits and a unit, such as 5S" },
  connect: { name: "connect-timeout-ms", form: /^(\d{1,10})$/, expected: "at most ten digits" },
} as const;

const timeoutOf: Readonly<Partial<Record<Protocol, (typeof timeouts)[keyof typeof timeouts]>>> = {
  grpc: timeouts.grpc,
  "grpc-web": timeouts.grpc,
  connect: timeouts.connect,
};

/** Names of the headers that {@link readTimeout} reads. */
export const timeoutHeaders = Object.values(timeouts).map(({ name }) => name);

const unitsMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 };

/** Limit on the delay of a timer, in milliseconds. Longer timeouts count as this one. */
const maxMs = 2 ** 31 - 1;

/**
 * Returns the timeout that the client set, in milliseconds; undefined without one.
 *
 * @throws RpcError INVALID_REQUEST
 */
export function readTimeout(exchange: Exchange, protocol: Protocol): number | undefined {
  const header = timeoutOf[protocol];
  const text = header && exchange.header(header.name);
  if (text === undefined) {
    return undefined;
  }
  const [, digits, unit = "m"] = header!.form.exec(text) ?? [];
  if (digits === undefined) {
    throw new RpcError("INVALID_REQUEST", `The header ${header!.name} must be ${header!.expected}.`);
  }
  return Math.min(Number(digits) * unitsMs[unit]!, maxMs);
}

/** Returns true if a header or parameter names a compression. */
export function isCompressed(encoding: string | undefined): boolean {
  return encoding !== undefined && encoding !== "" && encoding !== "identity";
}

/** Largest request message after decompression, in bytes: of rpcs without a route, which peers call. */
export const maxMessageBytes = 4 * 1024 * 1024;
/** The same for rpcs with a route by GET, whose requests fit into a URL, and for the standard services of gRPC. */
const maxReadBytes = 64 * 1024;

/** Returns the limit on a request message of an rpc after decompression, in bytes. In each protocol it is the same. */
export function maxRequestBytes(method: DescMethod): number {
  let maxBytes = maxBytesOf.get(method);
  if (maxBytes === undefined) {
    maxBytes = findMaxBytes(method);
    maxBytesOf.set(method, maxBytes);
  }
  return maxBytes;
}

/** Limits of rpcs, because reading an option decodes it. */
const maxBytesOf = new WeakMap<DescMethod, number>();

function findMaxBytes(method: DescMethod): number {
  const route = getOption(method, http).pattern.case;
  if (route === "get" || method.parent.typeName.startsWith("grpc.")) {
    return maxReadBytes;
  }
  return route === undefined ? maxMessageBytes : maxBodyBytes;
}

/** Length of the prefix before a message, in bytes. */
export const prefixBytes = 5;

const nothing = Buffer.alloc(0);

/** @param end bytes after the message. */
export function writeEnvelope(flags: number, message: Uint8Array, end: Uint8Array = nothing): Buffer {
  const bytes = Buffer.allocUnsafe(prefixBytes + message.length + end.length);
  bytes[0] = flags;
  bytes.writeUInt32BE(message.length, 1);
  bytes.set(message, prefixBytes);
  bytes.set(end, prefixBytes + message.length);
  return bytes;
}

/** Creates the early check of the first prefix: it rejects a message that is too large before the body arrives. */
export function firstPrefix(maxBytes: number): EarlyCheck {
  return { bytes: prefixBytes, check: (body) => checkLength(body, maxBytes) };
}

/**
 * Returns the only message in the body of a unary request.
 *
 * @throws RpcError INVALID_REQUEST if the body is not exactly one complete message; PAYLOAD_TOO_LARGE; INTERNAL_ERROR,
 * as gRPC requires, if the message is compressed and no header names the encoding.
 */
export function readOnlyMessage(body: Buffer, maxBytes: number): Buffer {
  if (body.length < prefixBytes) {
    const message = body.length === 0 ? "The request contains no message." : "The request ended within a message.";
    throw new RpcError("INVALID_REQUEST", message);
  }
  const [flags] = body;
  const lengthBytes = body.readUInt32BE(1);
  if (flags === 1) {
    throw new RpcError(
      "INTERNAL_ERROR",
      "The message is compressed, but the header grpc-encoding names no compression.",
    );
  }
  if (flags !== 0) {
    throw new RpcError("INVALID_REQUEST", `The message has unknown flags: ${flags}.`);
  }
  checkLength(body, maxBytes);
  if (body.length < prefixBytes + lengthBytes) {
    throw new RpcError("INVALID_REQUEST", "The request ended within a message.");
  }
  if (body.length > prefixBytes + lengthBytes) {
    throw new RpcError("INVALID_REQUEST", "The request contains more than one message; this rpc accepts exactly one.");
  }
  return body.subarray(prefixBytes);
}

function checkLength(body: Buffer, maxBytes: number): void {
  if (body.readUInt32BE(1) > maxBytes) {
    throw new RpcError("PAYLOAD_TOO_LARGE", `A message must not be larger than ${maxBytes} bytes.`);
  }
}
