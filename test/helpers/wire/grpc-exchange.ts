/** A gRPC call as raw HTTP/2 frames, valid or not, and its response. */
import { fromBinary } from "@bufbuild/protobuf";
import { gunzipSync } from "node:zlib";
import { type Status, StatusSchema } from "../../../gen/google/rpc/status_pb.js";
import type { Field } from "./hpack.js";
import type { RawAnswer } from "./raw-http2.js";

/** Header fields to set or replace; undefined removes a field. */
export type Overrides = Readonly<Record<string, string | Buffer | undefined>>;

/** Returns the header fields of a gRPC request, pseudo headers first. */
export function grpcFields(path: string, overrides: Overrides = {}): Field[] {
  const fields: Record<string, string | Buffer | undefined> = {
    ":method": "POST",
    ":scheme": "http",
    ":path": path,
    ":authority": "localhost",
    "content-type": "application/grpc",
    te: "trailers",
    ...overrides,
  };
  return Object.entries(fields).filter((field): field is [string, string | Buffer] => field[1] !== undefined);
}

/** A gRPC response. */
export interface GrpcAnswer {
  readonly httpStatus: number;
  readonly contentType: string | undefined;
  /** Undefined if the response is not gRPC. */
  readonly grpcStatus: number | undefined;
  /** The message as sent, percent-encoded. */
  readonly rawMessage: string | undefined;
  readonly message: string | undefined;
  readonly details: Status | undefined;
  readonly messages: readonly Buffer[];
  readonly trailersOnly: boolean;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Parses a response.
 *
 * @throws Error if the response violates the gRPC protocol.
 */
export function readGrpcAnswer({ headers, trailers, body }: RawAnswer): GrpcAnswer {
  const last = trailers ?? headers;
  const rawMessage = last["grpc-message"];
  if (rawMessage !== undefined && !/^(?:[\x20-\x24\x26-\x7e]|%[0-9A-F]{2})*$/i.test(rawMessage)) {
    throw new Error(`grpc-message is not percent-encoded: ${JSON.stringify(rawMessage)}`);
  }
  if (trailers !== undefined && (headers["grpc-status"] !== undefined || trailers[":status"] !== undefined)) {
    throw new Error("The response has two statuses.");
  }
  const details = last["grpc-status-details-bin"];
  return {
    httpStatus: Number(headers[":status"]),
    contentType: headers["content-type"],
    grpcStatus: last["grpc-status"] === undefined ? undefined : Number(last["grpc-status"]),
    rawMessage,
    message: rawMessage === undefined ? undefined : decodeURIComponent(rawMessage),
    details: details === undefined ? undefined : fromBinary(StatusSchema, Buffer.from(details, "base64")),
    messages: /^application\/grpc/.test(headers["content-type"] ?? "")
      ? [...messagesOf(body, headers["grpc-encoding"])]
      : [],
    trailersOnly: trailers === undefined && body.length === 0,
    headers,
  };
}

function* messagesOf(body: Buffer, encoding: string | undefined): Generator<Buffer> {
  for (let at = 0; at < body.length;) {
    const [flagByte, end] = [body[at]!, at + 5 + body.readUInt32BE(at + 1)];
    const bytes = body.subarray(at + 5, end);
    if (end > body.length || flagByte > 1 || (flagByte === 1 && encoding !== "gzip")) {
      throw new Error(`This is no message: ${body.subarray(at).toString("hex")}`);
    }
    yield flagByte === 1 ? gunzipSync(bytes) : bytes;
    at = end;
  }
}
