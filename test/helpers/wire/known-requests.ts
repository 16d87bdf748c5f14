/** Builds requests of any rpc from known values, by its descriptor, so that no field is forgotten. */
import {
  type DescField,
  type DescMessage,
  fromJson,
  getOption,
  type JsonObject,
  type JsonValue,
  ScalarType,
} from "@bufbuild/protobuf";
import { cursor } from "../../../gen/gatehouse/annotations/v1/annotations_pb.js";

/** Known values of a chain. */
export interface Known {
  /** Addresses, hashes, keys, words. */
  readonly texts: readonly string[];
  readonly numbers: readonly number[];
}

/**
 * Builds requests of a type in protobuf JSON. In each one, one field has any of its values, and the others their first.
 */
export function requestsOf(desc: DescMessage, known: Known): JsonObject[] {
  const fields = desc.fields
    .map((field) => [field, valuesOf(field, known)] as const)
    .filter(([, { length }]) => length > 0);
  const first = Object.fromEntries(fields.map(([{ jsonName }, [value]]) => [jsonName, value!]));
  const varied = fields.flatMap(([{ jsonName }, values]) => values.map((value) => ({ ...first, [jsonName]: value })));
  const alone = fields.flatMap(([{ jsonName }, values]) => values.map((value) => ({ [jsonName]: value })));
  return [
    ...new Map(
      [{}, ...varied, ...(fields.length > 1 ? alone : [])].map((request) => [JSON.stringify(request), request]),
    ).values(),
  ];
}

/** Decodes a request into a message. */
export function messageOf(desc: DescMessage, request: JsonObject): object {
  return fromJson(desc, request);
}

function valuesOf(field: DescField, { texts, numbers }: Known): readonly JsonValue[] {
  switch (field.fieldKind) {
    case "scalar":
      // A cursor starts with a number.
      return field.scalar === ScalarType.STRING
        ? getOption(field, cursor)
          ? numbers.map(String)
          : texts
        : field.scalar === ScalarType.BOOL
          ? [true, false]
          : field.scalar === ScalarType.BYTES
            ? []
            : numbers;
    case "enum":
      return field.enum.values.map(({ number }) => number);
    case "list":
      // One item is enough.
      return field.listKind === "scalar" && field.scalar === ScalarType.STRING ? texts.map((text) => [text]) : [];
    default:
      return [];
  }
}
