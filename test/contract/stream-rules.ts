/**
 * Rules of every streaming response, as rows: headers that keep proxies from buffering and caching, and one error for
 * each fault of a request. Each runs in every protocol with streams; a new protocol needs an entry in `framings`.
 */
import { fromBinary } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import type { ExecutionContext } from "ava";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "../../gen/google/rpc/status_pb.js";
import { grpcMessage } from "../helpers/wire/http2-frames.js";
import { readText, type TransportClient } from "../helpers/wire/transports.js";
import type { streaming } from "./compare.js";

type Streaming = (typeof streaming)[number];

interface Framing {
  readonly type: string;
  readonly timeout: string;
  /** Unit after the digits of a timeout in milliseconds. */
  readonly unit: string;
  readonly body: string | Buffer;
  readonly more?: Readonly<Record<string, string>>;
}

const empty = grpcMessage(Buffer.alloc(0));
const grpc = { type: "application/grpc", timeout: "grpc-timeout", unit: "m", body: empty, more: { te: "trailers" } };
const web = { type: "application/grpc-web+proto", timeout: "grpc-timeout", unit: "m", body: empty };
const connect = { timeout: "connect-timeout-ms", unit: "" };

const framings: Readonly<Record<Streaming, Framing>> = {
  "Connect JSON": { ...connect, type: "application/connect+json", body: grpcMessage(Buffer.from("{}")) },
  "Connect binary": { ...connect, type: "application/connect+proto", body: empty },
  "gRPC-Web": web,
  "gRPC-Web text": { ...web, type: "application/grpc-web-text", body: empty.toString("base64") },
  gRPC: grpc,
  "gRPC by Connect": grpc,
};

const stream = "/gatehouse.health.v1.HealthService/WatchHealth";

/** Request with a fault: its timeout in digits, whether it has no message, and the error of all protocols. */
const faults: readonly (readonly [title: string, timeout: string | undefined, isEmpty: boolean, expected: string])[] = [
  ["an invalid timeout", "-1", false, "3 INVALID_REQUEST"],
  ["a timeout of eleven digits", "10000000000", false, "3 INVALID_REQUEST"],
  ["a timeout of zero", "0", false, "4 DEADLINE_EXCEEDED"],
  ["no message", undefined, true, "3 INVALID_REQUEST"],
];
/** Timeouts that clients send for a week and for 30 days. */
const longTimeouts = ["604800000", "2592000000"];

/** Checks that streams of a protocol follow the rules. */
export async function checkStreamRules(t: ExecutionContext, protocol: Streaming, client: TransportClient) {
  const { type, timeout, unit, body, more } = framings[protocol];
  const headersWith = (digits?: string): Record<string, string> => ({
    ...{ "content-type": type, ...more },
    ...(digits !== undefined && { [timeout]: `${digits}${unit}` }),
  });
  const methodOf = { method: "POST" } as const;

  for (const digits of [undefined, ...longTimeouts]) {
    const controller = new AbortController();
    const request = { ...methodOf, headers: headersWith(digits), body };
    const response = await client.open(stream, request, controller.signal);
    const { headers } = response;
    t.is(response.status, 200, digits);
    t.is(headers["x-accel-buffering"], "no", digits);
    t.is(headers["cache-control"], "private, no-store", digits);
    t.is(headers["x-content-type-options"], "nosniff", digits);
    t.truthy(headers["x-request-id"], digits);
    t.is(headers["grpc-status"], undefined, digits);
    // The first message arrives at once, and no error.
    const [first] = await takeFirst(response.body);
    t.true(first!.length > 5, digits);
    controller.abort();
  }
  for (const [title, digits, isEmpty, expected] of faults) {
    const request = { ...methodOf, headers: headersWith(digits), body: isEmpty ? "" : body };
    const response = await client.open(stream, request, AbortSignal.timeout(20_000));
    const text = await readText(response);
    t.is(readError(response.headers, text), expected, title);
  }
}

async function takeFirst(body: AsyncIterable<Buffer>): Promise<Buffer[]> {
  for await (const piece of body) {
    return [piece];
  }
  return [];
}

/** Returns the code and the reason of an error, in the form of its protocol. */
function readError(headers: Readonly<Record<string, unknown>>, text: string): string {
  const details = headers["grpc-status-details-bin"];
  if (details === undefined) {
    const { error } = JSON.parse(text.slice(5)) as {
      error: { code: string; details: { debug: { reason: string } }[] };
    };
    const codes: Readonly<Record<string, number>> = { invalid_argument: 3, deadline_exceeded: 4, unimplemented: 12 };
    return `${codes[error.code]} ${error.details?.[0]?.debug.reason}`;
  }
  const status = fromBinary(StatusSchema, Buffer.from(String(details), "base64"));
  const info = status.details.map((detail) => anyUnpack(detail, ErrorInfoSchema)).find((found) => found !== undefined);
  return `${String(headers["grpc-status"])} ${info?.reason}`;
}
