/** Reads a proof from JSON, as a node returns it over plain HTTP, such as a stored file. */
import {
  type DescField,
  type DescMessage,
  fromJson,
  type JsonValue,
  type MessageShape,
  ScalarType,
} from "@bufbuild/protobuf";
import { type GetProofResponse, GetProofResponseSchema } from "../../../gen/gatehouse/state/v1/state_pb.js";
import { readDecimalInteger } from "../../../src/base/text/integers.js";
import {
  isJsonObject,
  type Json,
  type JsonError,
  JsonNumber,
  parseJsonText,
  toPlainJson,
} from "../../../src/base/text/parse-json.js";
import { decodeBase64 } from "../bytes.js";
import { ProofError } from "./proof-error.js";

/**
 * Parses the response to `GET /state/proof`.
 *
 * @throws ProofError malformed
 */
export function readProofJson(text: string): GetProofResponse {
  return readProof(parseProofText(text));
}

/**
 * Parses JSON text strictly, as the node does.
 *
 * @throws ProofError malformed
 */
export function parseProofText(text: string): Json {
  try {
    return parseJsonText(text);
  } catch (cause) {
    throw new ProofError("malformed", `The text of the proof ${(cause as JsonError).message}.`, { cause });
  }
}

/**
 * Reads the response to `GET /state/proof` from parsed JSON.
 *
 * @throws ProofError malformed
 */
export function readProof(json: Json): GetProofResponse {
  try {
    if (!isJsonObject(json) || !("header" in json)) {
      throw new TypeError("It has no header.");
    }
    return readMessage(GetProofResponseSchema, json);
  } catch (cause) {
    throw new ProofError("malformed", "This is not a proof in the JSON form of a node's response.", { cause });
  }
}

/**
 * Reads a message from parsed JSON. Ignores unknown members.
 *
 * @throws Error if the JSON does not have the form of the message.
 */
export function readMessage<T extends DescMessage>(schema: T, json: Json): MessageShape<T> {
  return fromJson(schema, convertMessage(schema, json), { ignoreUnknownFields: true });
}

/**
 * Converts JSON for `fromJson`, which reads whole numbers and base64 leniently. Whole numbers become decimal texts.
 *
 * @throws TypeError for a whole number or base64 in another form than that of ProtoJSON.
 */
function convertMessage({ fields }: DescMessage, json: Json): JsonValue {
  if (!isJsonObject(json)) {
    return toPlainJson(json) as JsonValue;
  }
  const byName = new Map(fields.flatMap((field) => [field.name, field.jsonName].map((name) => [name, field])));
  return Object.fromEntries(
    Object.entries(json).map(([name, value]) => [name, convertField(byName.get(name), value)] as const),
  );
}

function convertField(field: DescField | undefined, json: Json): JsonValue {
  if (field === undefined || json === null) {
    return toPlainJson(json) as JsonValue;
  }
  return field.fieldKind === "list" && Array.isArray(json)
    ? (json as readonly Json[]).map((item) => convertValue(field, item))
    : convertValue(field, json);
}

function convertValue({ message, scalar, name }: DescField, json: Json): JsonValue {
  if (message !== undefined) {
    return convertMessage(message, json);
  }
  switch (scalar) {
    case ScalarType.BYTES:
      if (typeof json !== "string" || decodeBase64(json) === undefined) {
        throw new TypeError(`${name} is not base64.`);
      }
      return json;
    case ScalarType.INT64:
    case ScalarType.UINT32:
    case ScalarType.UINT64: {
      const text = json instanceof JsonNumber ? json.text : typeof json === "object" ? "" : String(json);
      const number = readDecimalInteger(text);
      if (number === undefined) {
        throw new TypeError(`${name} is not a whole number.`);
      }
      return String(number);
    }
    default:
      return toPlainJson(json) as JsonValue;
  }
}
