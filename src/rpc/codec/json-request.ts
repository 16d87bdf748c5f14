/**
 * Decoding of JSON requests: standard protobuf JSON, the keyword for the latest block, and errors that name the
 * parameter.
 */
import { type DescMessage, getOption, type JsonValue } from "@bufbuild/protobuf";
import { latest } from "../../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { latestBlock, latestKeyword } from "../../base/latest-block.js";
import { RpcError } from "../errors.js";
import { findInvalidValue, findUnknownEnumName, namesIn } from "./json-errors.js";
import { parseJson } from "./parse-json.js";
import { readJson } from "./read-json.js";
import { requestValidator } from "./request-rules.js";

/**
 * Decodes a request message from JSON text; ignores unknown members.
 *
 * @throws RpcError INVALID_REQUEST
 */
export function readJsonText(input: DescMessage, text: string): object {
  const json = parseJson(text);
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    throw new RpcError("INVALID_REQUEST", "The request body must be a JSON object.");
  }
  return readJsonRequest(input, json as JsonValue);
}

/**
 * Decodes a request message from a JSON object; ignores unknown members.
 *
 * @throws RpcError INVALID_REQUEST
 */
export function readJsonRequest(input: DescMessage, json: JsonValue): object {
  const message = readMessage(input, replaceLatestKeyword(input, json));
  const members = json as Readonly<Record<string, JsonValue>>;
  requestValidator(input)(message, (field) => namesIn(members, field)[0] ?? field.jsonName);
  return message;
}

function readMessage(input: DescMessage, json: JsonValue): object {
  const unknown = findUnknownEnumName(input, json);
  if (unknown !== undefined) {
    throw unknown;
  }
  try {
    return readJson(input, json);
  } catch {
    throw (
      findInvalidValue(input, json) ?? new RpcError("INVALID_REQUEST", `The request is not a valid ${input.typeName}.`)
    );
  }
}

/** Replaces the keyword for the latest block by its number. */
function replaceLatestKeyword(input: DescMessage, json: JsonValue): JsonValue {
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    return json;
  }
  const replaced: Record<string, JsonValue> = {};
  for (const field of input.fields) {
    for (const name of getOption(field, latest) ? namesIn(json, field) : []) {
      if (json[name] === latestKeyword) {
        replaced[name] = `${latestBlock}`;
      }
    }
  }
  return Object.keys(replaced).length === 0 ? json : { ...json, ...replaced };
}
