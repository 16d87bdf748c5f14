/** Message formats of unary Connect calls: standard protobuf JSON, and binary with the compiled codecs. */
import { create, type DescMethod, toJsonString } from "@bufbuild/protobuf";
import { requestDecoder } from "../codec/request-rules.js";
import { binaryEncoder } from "../codec/binary-encoder.js";
import { readJsonText } from "../codec/json-request.js";
import { shareBytes } from "../exchange/share-bytes.js";
import type { HttpResponseBody } from "../exchange/exchange.js";

/** Codec for the messages of an rpc in one format. */
export interface UnaryCodec {
  readonly contentType: string;
  /** Decodes a body. Throws the RpcError that describes what is wrong. */
  readonly decode: (body: Buffer) => object;
  readonly encode: (message: object) => HttpResponseBody;
}

export type UnaryCodecs = Readonly<Record<"json" | "proto", UnaryCodec>>;

/** Compiles the codecs of an rpc for both formats. */
export function compileUnaryCodecs({ input, output }: DescMethod): UnaryCodecs {
  const decodeBinary = requestDecoder(input);
  const encodeBinary = binaryEncoder(output);
  const encodeJson = shareBytes((message) => toJsonString(output, create(output, message as never)));
  return {
    json: {
      contentType: "application/json",
      decode: (body) => readJsonText(input, body.toString("utf8")),
      encode: encodeJson,
    },
    proto: {
      contentType: "application/proto",
      decode: decodeBinary,
      encode: (message) => ({ body: encodeBinary(message) }),
    },
  };
}
