/** Reads a proof from the JSON that a node answers over plain HTTP: of a file, say, that somebody kept. */
import {
  type DescField,
  type DescMessage,
  fromJson,
  getOption,
  type JsonObject,
  type JsonValue,
} from "@bufbuild/protobuf";
import { raw_json } from "../../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { type GetProofResponse, GetProofResponseSchema } from "../../../gen/gatehouse/state/v1/state_pb.js";
import { eachMember, itemsOf, type Member } from "../../../src/storage/document.js";
import { skipSpace, typeOfJson } from "../../../src/storage/json-text.js";
import { ProofError } from "./proof-error.js";

/**
 * Reads the answer to `GET /state/proof`.
 *
 * @param text as it came: values and documents stand in it letter by letter, and are another text when it is formatted.
 * @throws ProofError malformed
 */
export function readProofJson(text: string): GetProofResponse {
  try {
    JSON.parse(text);
    if (typeOfJson(text) !== "object" || ![...eachMember(text)].some(({ name }) => name === "header")) {
      throw new TypeError("It has no header.");
    }
    return fromJson(GetProofResponseSchema, toProtobufJson(GetProofResponseSchema, text));
  } catch (cause) {
    throw new ProofError("malformed", "This is no proof as a node answers it in JSON.", { cause });
  }
}

/** The same in the JSON of protobuf, in which texts of JSON are strings, and large numbers, too. */
function toProtobufJson(desc: DescMessage, text: string): JsonObject {
  const json: JsonObject = {};
  for (const member of eachMember(text)) {
    const field = desc.fields.find(({ jsonName }) => jsonName === member.name);
    if (field !== undefined) {
      json[member.name] = toValue(field, text, member);
    }
  }
  return json;
}

function toValue(field: DescField, text: string, member: Member): JsonValue {
  if (getOption(field, raw_json)) {
    return wholeValue(text, member);
  }
  const value = text.slice(member.valueStart, member.valueEnd);
  if (field.message !== undefined && value !== "null") {
    const { message } = field;
    return field.fieldKind === "list"
      ? itemsOf(value).map(({ start, end }) => toProtobufJson(message, value.slice(start, end)))
      : toProtobufJson(message, value);
  }
  return typeOfJson(value) === "number" ? value : (JSON.parse(value) as JsonValue);
}

/** All that stands between the colon and what follows the value: a document may begin and end with space. */
function wholeValue(text: string, { valueStart, valueEnd }: Member): string {
  return text.slice(text.lastIndexOf(":", valueStart) + 1, skipSpace(text, valueEnd));
}
