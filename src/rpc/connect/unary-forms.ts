/** The messages of unary calls over Connect: standard protobuf JSON, or binary by the compiled codecs. */
import { create, type DescMethod, toJsonString } from "@bufbuild/protobuf";
import { requestDecoder } from "../codec/request-decoder.js";
import { binaryEncoder } from "../codec/binary-encoder.js";
import { readJsonText } from "../codec/json-request.js";
import { shareBytes } from "../exchange/share-bytes.js";
import type { HttpResponseBody } from "../exchange/exchange.js";

/** One form of an rpc's messages. */
export interface Form {
  readonly contentType: string;
  /** Throws the Failure that says what is wrong with the body. */
  readonly decode: (body: Buffer) => object;
  readonly encode: (message: object) => HttpResponseBody;
}

export type Forms = Readonly<Record<"json" | "proto", Form>>;

/** Compiles both forms of an rpc. */
export function compileForms({ input, output }: DescMethod): Forms {
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
