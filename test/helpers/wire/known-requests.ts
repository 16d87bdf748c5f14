/** Requests of any rpc, made of what somebody knows of a chain: a walk over descriptors asks what no one thought of. */
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

/** What somebody knows. */
export interface Known {
  /** Addresses, hashes, keys, words. */
  readonly texts: readonly string[];
  readonly numbers: readonly number[];
}

/**
 * Requests of a type, as the JSON of protobuf: each field has every value in one of them, and the others the first one.
 */
export function requestsOf(desc: DescMessage, known: Known): JsonObject[] {
  const fields = desc.fields
    .map((field) => [field, valuesOf(field, known)] as const)
    .filter(([, { length }]) => length > 0);
  const first = Object.fromEntries(fields.map(([{ jsonName }, [value]]) => [jsonName, value!]));
  const varied = fields.flatMap(([{ jsonName }, values]) => values.map((value) => ({ ...first, [jsonName]: value })));
  const alone = fields.flatMap(([{ jsonName }, values]) => values.map((value) => ({ [jsonName]: value })));
  return [
    ...new Map([{}, ...varied, ...(fields.length > 1 ? alone : [])].map((one) => [JSON.stringify(one), one])).values(),
  ];
}

/** A request as a message. */
export function messageOf(desc: DescMessage, request: JsonObject): object {
  return fromJson(desc, request);
}

function valuesOf(field: DescField, { texts, numbers }: Known): readonly JsonValue[] {
  switch (field.fieldKind) {
    case "scalar":
      // A place in a stream begins with a number.
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
      // One item is enough to ask for a thing.
      return field.listKind === "scalar" && field.scalar === ScalarType.STRING ? texts.map((text) => [text]) : [];
    default:
      return [];
  }
}
