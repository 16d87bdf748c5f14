/**
 * Rules of gRPC over HTTP/2 for a server: each has a request and the required response. From the
 * specification (grpc/grpc, doc/PROTOCOL-HTTP2.md, doc/compression.md, doc/statuscodes.md) and RFC 9113; where these
 * leave a choice, a comment states the choice, and a list of codes names every allowed one.
 */
import { toBinary, create } from "@bufbuild/protobuf";
import { gzipSync } from "node:zlib";
import { HealthCheckRequestSchema } from "../../../gen/health/v1/health_pb.js";
import type { Overrides } from "../../helpers/wire/grpc-exchange.js";
import { grpcMessage } from "../../helpers/wire/http2-frames.js";

/** gRPC status codes that the rules name. */
export const codes = {
  ok: 0,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  resourceExhausted: 8,
  unimplemented: 12,
  internal: 13,
} as const;

/** Rule with its request and the expected response. */
export interface Rule {
  readonly rule: string;
  /** Path of the rpc. Default: GetVersion. */
  readonly path?: string | Buffer;
  readonly headers?: Overrides;
  /** Payloads of DATA frames. Default: one empty message. The last one ends the request, unless it stays open. */
  readonly frames?: readonly Buffer[];
  readonly staysOpen?: boolean;
  readonly expected: {
    /** Expected HTTP status. Default: 200. */
    readonly httpStatus?: number | readonly number[];
    /** Expected gRPC status; undefined if the response is not gRPC. */
    readonly grpcStatus?: number | readonly number[];
    readonly message?: string;
    /** True if a reset of the stream is also allowed. */
    readonly orReset?: true;
    readonly header?: readonly [name: string, value: RegExp];
  };
}

const getVersion = "/gatehouse.info.v1.InfoService/GetVersion";
const watchHealth = "/gatehouse.health.v1.HealthService/WatchHealth";
const listBlocks = "/gatehouse.chain.v1.ChainService/ListBlocks";
const check = "/grpc.health.v1.Health/Check";

const empty = grpcMessage(Buffer.alloc(0));
/** Unknown field of ten bytes, which messages may contain. */
const tenUnknown = Buffer.concat([Buffer.from([0x7a, 8]), Buffer.alloc(8)]);
/** Incomplete message: a prefix that announces ten bytes, and two of them. */
const tenBytes = grpcMessage(tenUnknown.subarray(0, 2), 0, 10);
const checkOf = (service: string): Buffer =>
  grpcMessage(toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, { service })));
const gzipped = gzipSync(tenUnknown);

const ok = { grpcStatus: codes.ok } as const;
const notGrpc = { httpStatus: 415 } as const;

const gzip = { headers: { "grpc-encoding": "gzip" } };
const identity = { headers: { "grpc-encoding": "identity" } };
const isInternal = { grpcStatus: codes.internal } as const;
const isInvalid = { grpcStatus: codes.invalidArgument } as const;
const isTooLarge = { grpcStatus: codes.resourceExhausted } as const;
/** Codes that servers use for a malformed message. */
const malformed = { grpcStatus: [codes.invalidArgument, codes.internal] } as const;

const contentTypes: Rule[] = [
  ...[
    "application/grpc",
    "application/grpc+proto",
    "application/grpc;charset=utf-8",
    "application/grpc+proto; charset=utf-8",
    // Media types are case-insensitive (RFC 9110, 8.3.1).
    "Application/GRPC",
  ].map((type) => ({ rule: `content type ${type}`, headers: { "content-type": type }, expected: ok })),
  // "SHOULD respond with HTTP status of 415 (Unsupported Media Type). This will prevent other HTTP/2 clients from
  // interpreting a gRPC error response, which uses status 200 (OK), as successful."
  ...["application/grpcfoo", "application/grpc-foo", "application/grp", "text/html", "application/octet-stream"].map(
    (type) => ({ rule: `content type ${type}`, headers: { "content-type": type }, expected: notGrpc }),
  ),
  { rule: "no content type", headers: { "content-type": undefined }, expected: notGrpc },
  // The specification lets a server choose its codecs, and does not define the error for others.
  ...["application/grpc+json", "application/grpc+thrift", "application/grpc+protobuf"].map((type) => ({
    rule: `content type ${type}, which is not spoken here`,
    headers: { "content-type": type },
    frames: [grpcMessage(Buffer.from("{}"))],
    expected: { httpStatus: [200, 415], grpcStatus: [codes.unimplemented] },
  })),
];

const timeouts: Rule[] = [
  ...[
    "20H",
    "1000M",
    "100S",
    "100000m",
    "99999999u",
    "99999999m",
    "00000099S",
    "604800000m",
    "2592000000m",
    "9999999999H",
  ].map((timeout) => ({
    rule: `time-out ${timeout}`,
    headers: { "grpc-timeout": timeout },
    expected: ok,
  })),
  // The specification does not define the error for an invalid timeout: here it is INVALID_ARGUMENT.
  ...["-1S", "1.5S", "0x1S", "1", "S", "", "10000000000m", "1s", "1 S", "+1S", "1SS", "1e1S", "NaNS", "1S, 1S"].map(
    (timeout) => ({
      rule: `time-out ${JSON.stringify(timeout)}`,
      headers: { "grpc-timeout": timeout },
      expected: { grpcStatus: codes.invalidArgument },
    }),
  ),
  {
    // A field value that begins with a space makes a request malformed (RFC 9113, 8.2.1), which HTTP/2 may tell first;
    // Node.js leaves the field out instead, so that nobody sees a time-out.
    rule: 'time-out " 1S"',
    headers: { "grpc-timeout": " 1S" },
    expected: { grpcStatus: [codes.invalidArgument, codes.ok], orReset: true },
  },
  {
    rule: "a malformed time-out of a stream",
    path: watchHealth,
    headers: { "grpc-timeout": "-1S" },
    expected: isInvalid,
  },
  ...[
    ["that is over at once, of a unary call", getVersion, "1n"],
    ["of nothing", getVersion, "0S"],
    ["that is over at once, of a stream", watchHealth, "1n"],
    ["of a stream that would go on", watchHealth, "300m"],
    ["of a stream that would go on, in microseconds", "/grpc.health.v1.Health/Watch", "300000u"],
  ].map(([rule, path, timeout]) => ({
    rule: `a time-out ${rule}`,
    path: path!,
    headers: { "grpc-timeout": timeout },
    expected: { grpcStatus: codes.deadlineExceeded },
  })),
];

const compression: Rule[] = [
  { rule: "gzip", ...gzip, frames: [grpcMessage(gzipped, 1)], expected: ok },
  { rule: "gzip announced, the message not compressed", ...gzip, frames: [grpcMessage(tenUnknown)], expected: ok },
  { rule: "identity", ...identity, frames: [grpcMessage(tenUnknown)], expected: ok },
  { rule: "the compressed flag without grpc-encoding", frames: [grpcMessage(gzipped, 1)], expected: isInternal },
  { rule: "the compressed flag, identity", ...identity, frames: [grpcMessage(gzipped, 1)], expected: isInternal },
  ...["snappy", "x-unknown", "gzip, gzip"].map((encoding) => ({
    rule: `grpc-encoding ${encoding}, which is not known`,
    headers: { "grpc-encoding": encoding },
    frames: [grpcMessage(gzipped, 1)],
    expected: { grpcStatus: codes.unimplemented, header: ["grpc-accept-encoding", /\bgzip\b/] as const },
  })),
  { rule: "gzip that is none", ...gzip, frames: [grpcMessage(Buffer.from("no gzip"), 1)], expected: malformed },
  // The flag is 0 or 1. The specification does not define others.
  { rule: "flag byte 2", frames: [grpcMessage(tenUnknown, 2)], expected: malformed },
  { rule: "the flag of trailers in gRPC-Web", frames: [grpcMessage(Buffer.from("a: b"), 0x80)], expected: malformed },
  { rule: "an answer that may be compressed", headers: { "grpc-accept-encoding": "gzip,identity" }, expected: ok },
];

/** RFC 9113, 8.3.1: a path without a leading slash is malformed, so its stream may be reset. */
const paths: Rule[] = [
  ...[
    "/gatehouse.info.v1.InfoService/Nothing",
    "/gatehouse.info.v1.InfoService/getVersion",
    "/gatehouse.info.v1.InfoService/GetVersion/",
    "/GATEHOUSE.INFO.V1.INFOSERVICE/GetVersion",
    "/gatehouse.info.v1.InfoService",
    "/gatehouse.nothing.v1.NothingService/Get",
    "/",
    "//",
    "/version",
    "/a%b/c%",
    "/a%0a%0d/b%00",
    "/%67atehouse.info.v1.InfoService/GetVersion",
    "/__proto__/constructor",
    `/a/${"b".repeat(8_000)}`,
  ].map((path) => ({
    rule: `path ${path.length > 80 ? `of ${path.length} characters` : path}`,
    path,
    expected: { grpcStatus: codes.unimplemented },
  })),
  ...["/é/ключ", "/a\u{1f600}/b"].map((path) => ({
    rule: `path ${path} in bytes of UTF-8`,
    path: Buffer.from(path),
    expected: { grpcStatus: codes.unimplemented, orReset: true as const },
  })),
  ...["gatehouse.info.v1.InfoService/GetVersion", "*", ""].map((path) => ({
    rule: `path ${JSON.stringify(path)}, without a slash`,
    path,
    expected: { grpcStatus: codes.unimplemented, orReset: true as const },
  })),
];

/** Allowed codes for one message too many or too few: statuscodes.md requires UNIMPLEMENTED, but servers differ. */
const cardinality = { grpcStatus: [codes.unimplemented, codes.invalidArgument, codes.internal] } as const;
const noProtobuf = grpcMessage(Buffer.from([0xff]));
const bomb = grpcMessage(gzipSync(Buffer.alloc(32 * 1024 * 1024)), 1);
const mib = 1024 * 1024;

const messages: Rule[] = [
  {
    rule: "a message byte by byte",
    frames: [...grpcMessage(tenUnknown)].map((byte) => Buffer.from([byte])),
    expected: ok,
  },
  {
    rule: "a message among empty frames",
    frames: [Buffer.alloc(0), empty.subarray(0, 2), Buffer.alloc(0), empty.subarray(2), Buffer.alloc(0)],
    expected: ok,
  },
  { rule: "the end after 1 byte of the prefix", frames: [empty.subarray(0, 1)], expected: malformed },
  { rule: "the end after 4 bytes of the prefix", frames: [empty.subarray(0, 4)], expected: malformed },
  { rule: "the end within a message", frames: [tenBytes], expected: malformed },
  { rule: "the end before a message's first byte", frames: [tenBytes.subarray(0, 5)], expected: malformed },
  { rule: "the end within a message of a stream", path: listBlocks, frames: [tenBytes], expected: malformed },
  { rule: "bytes after the message", frames: [Buffer.concat([empty, Buffer.from([0, 0])])], expected: cardinality },
  { rule: "a message that is longer than it says", frames: [grpcMessage(tenUnknown, 0, 4)], expected: cardinality },
  { rule: "two messages to a unary rpc", frames: [Buffer.concat([empty, empty])], expected: cardinality },
  { rule: "two messages to a unary rpc, in two frames", frames: [empty, empty], expected: cardinality },
  { rule: "two messages to a server stream", path: listBlocks, frames: [empty, empty], expected: cardinality },
  { rule: "no message to a unary rpc", frames: [], expected: cardinality },
  { rule: "no message to a unary rpc, in an empty frame", frames: [Buffer.alloc(0)], expected: cardinality },
  { rule: "no message to a server stream", path: watchHealth, frames: [], expected: cardinality },
  { rule: "what is no message of protobuf", frames: [noProtobuf], expected: isInvalid },
  { rule: "what is no message of protobuf, to a stream", path: listBlocks, frames: [noProtobuf], expected: isInvalid },
  // The node rejects the message by its length, without waiting for it.
  ...[
    [getVersion, 5 * mib],
    [getVersion, 0x7fffffff],
    [getVersion, 0xffffffff],
    [listBlocks, 5 * mib],
  ].map(([path, length]) => ({
    rule: `a message to ${path} that says it has ${length} bytes`,
    path: path as string,
    frames: [grpcMessage(tenUnknown, 0, length as number)],
    staysOpen: true,
    expected: isTooLarge,
  })),
  { rule: "a compressed message of 32 MiB", ...gzip, frames: chunks(bomb), expected: isTooLarge },
];

/** Splits a message into frames of the size that every peer accepts. */
function chunks(bytes: Buffer): Buffer[] {
  const size = 16_384;
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size));
}

const failures: Rule[] = ["moon", "ключ 😀", "a%b", 'line\nfeed\r"quoted"', "100%20"].map((service) => ({
  rule: `a failure that tells of ${JSON.stringify(service)}`,
  path: check,
  frames: [checkOf(service)],
  expected: { grpcStatus: codes.notFound, message: service },
}));

const requests: Rule[] = [
  ...["GET", "PUT", "DELETE", "HEAD"].map((method) => ({
    // "Method → ":method POST""; what else comes is answered as HTTP.
    rule: `method ${method}`,
    headers: { ":method": method },
    expected: { httpStatus: [405, 415] },
  })),
  { rule: "GET without a body", headers: { ":method": "GET" }, frames: [], expected: { httpStatus: [405, 415] } },
  ...[
    ["binary, with padding", "AAECAwQ="],
    ["binary, without padding", "AAECAwQ"],
    ["binary, twice in one", "AAE=,AgM="],
    ["that is no base64", "%%%"],
    ["that is empty", ""],
  ].map(([rule, value]) => ({ rule: `metadata ${rule}`, headers: { "x-trace-bin": value }, expected: ok })),
  { rule: "unknown metadata", headers: { "x-anything": "a".repeat(4_000) }, expected: ok },
  { rule: "metadata with reserved names", headers: { "grpc-nothing": "1" }, expected: ok },
  { rule: "a message type", headers: { "grpc-message-type": "gatehouse.info.v1.GetVersionRequest" }, expected: ok },
  { rule: "another scheme", headers: { ":scheme": "https" }, expected: ok },
  // A client that makes requests of HTTP/2 leaves the authority out only where there is none.
  { rule: "no authority", headers: { ":authority": undefined }, expected: { ...ok, orReset: true } },
  { rule: "a header of the connection", headers: { connection: "keep-alive" }, expected: { ...ok, orReset: true } },
  {
    rule: "more headers than a server needs to take",
    headers: Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`x-${i}`, ""])),
    expected: { httpStatus: [200, 431], grpcStatus: [codes.ok, codes.resourceExhausted], orReset: true },
  },
];

/** All rules. */
export const rules = [...contentTypes, ...timeouts, ...compression, ...paths, ...messages, ...failures, ...requests];
