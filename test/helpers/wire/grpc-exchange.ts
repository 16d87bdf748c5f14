/** One gRPC call as raw frames of HTTP/2, right or wrong, and what its answer says. */
import { fromBinary } from "@bufbuild/protobuf";
import { gunzipSync } from "node:zlib";
import { type Status, StatusSchema } from "../../../gen/google/rpc/status_pb.js";
import type { Field } from "./hpack.js";
import type { RawAnswer } from "./http2-incoming.js";

/** Fields that are set, replaced, or left out where they are undefined. */
export type Overrides = Readonly<Record<string, string | Buffer | undefined>>;

/** The fields of a gRPC request, pseudo headers first. */
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

/** What an answer says in the words of gRPC. */
export interface GrpcAnswer {
  readonly httpStatus: number;
  readonly contentType: string | undefined;
  /** Undefined where the answer is none of gRPC. */
  readonly grpcStatus: number | undefined;
  /** As it was sent, percent-encoded. */
  readonly rawMessage: string | undefined;
  readonly message: string | undefined;
  readonly details: Status | undefined;
  readonly messages: readonly Buffer[];
  readonly trailersOnly: boolean;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Reads an answer.
 *
 * @throws Where it breaks the rules that every answer of gRPC keeps.
 */
export function readGrpcAnswer({ headers, trailers, body }: RawAnswer): GrpcAnswer {
  const last = trailers ?? headers;
  const rawMessage = last["grpc-message"];
  if (rawMessage !== undefined && !/^(?:[\x20-\x24\x26-\x7e]|%[0-9A-F]{2})*$/i.test(rawMessage)) {
    throw new Error(`grpc-message is not percent-encoded: ${JSON.stringify(rawMessage)}`);
  }
  if (trailers !== undefined && (headers["grpc-status"] !== undefined || trailers[":status"] !== undefined)) {
    throw new Error("The status is told twice.");
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
