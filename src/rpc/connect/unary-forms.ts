/** The messages of unary calls over Connect: standard protobuf JSON, or binary by the compiled codecs. */
import { create, type DescMethod, toJsonString } from "@bufbuild/protobuf";
import { requestDecoder } from "../codec/binary-decoder.js";
import { binaryEncoder } from "../codec/binary-encoder.js";
import { parseJson } from "../codec/parse-json.js";
import { shareBytes } from "../exchange/share-bytes.js";
import { Failure } from "../errors.js";
import type { AnswerBody } from "../exchange/exchange.js";
import { bindObject } from "../http/request-binder.js";

/** One form of an rpc's messages. */
export interface Form {
  readonly contentType: string;
  /** Throws the Failure that says what is wrong with the body. */
  readonly decode: (body: Buffer) => object;
  readonly encode: (message: object) => AnswerBody;
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
      decode: (body) => bindObject(input, parseObject(body)),
      encode: encodeJson,
    },
    proto: {
      contentType: "application/proto",
      decode: decodeBinary,
      encode: (message) => ({ body: encodeBinary(message) }),
    },
  };
}

/** An empty body is none: unlike binary, JSON has no empty text. */
function parseObject(body: Buffer) {
  const json = parseJson(body.toString("utf8"));
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    throw new Failure("INVALID_REQUEST", "The request body must be a JSON object.");
  }
  return json as Parameters<typeof bindObject>[1];
}
