/** Descriptions of the values that request fields accept. */
import { type DescField, getOption, ScalarType } from "@bufbuild/protobuf";
import { bounds, latest } from "../../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { latestKeyword } from "../../base/latest-block.js";
import { formOf } from "./text-forms.js";

/** Range of an integer field. */
export interface Range {
  readonly min: bigint;
  readonly max: bigint;
}

/**
 * Returns the range of an integer field: the bounds of the contract, or else those of its type. Undefined for other
 * types.
 */
export function rangeOf(field: DescField): Range | undefined {
  const ofType = field.scalar === undefined ? undefined : typeRange(field.scalar);
  const { min, max } = getOption(field, bounds);
  return ofType && { min: min ?? ofType.min, max: max ?? ofType.max };
}

function typeRange(type: ScalarType): Range | undefined {
  switch (type) {
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return { min: -(2n ** 31n), max: 2n ** 31n - 1n };
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return { min: 0n, max: 2n ** 32n - 1n };
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return { min: -(2n ** 63n), max: 2n ** 63n - 1n };
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return { min: 0n, max: 2n ** 64n - 1n };
    default:
      return undefined;
  }
}

/**
 * Returns a description of the values that a field or a list item accepts, to follow "must be".
 *
 * @param nameOf returns the name of an enum value in this protocol; called only for enums.
 */
export function expectationOf(field: DescField, nameOf: (number: number) => string): string {
  const range = rangeOf(field);
  if (range !== undefined) {
    return `a whole number from ${range.min} to ${range.max}${getOption(field, latest) ? `, or ${latestKeyword}` : ""}`;
  }
  if (field.enum !== undefined) {
    const numbers = field.enum.values.map(({ number }) => number).filter((number) => number !== 0);
    return `one of ${numbers.map(nameOf).join(", ")}`;
  }
  if (field.message !== undefined) {
    return "an object";
  }
  switch (field.scalar) {
    case ScalarType.BOOL:
      return "true or false";
    case ScalarType.BYTES:
      return "base64";
    case ScalarType.STRING:
      return formOf(field)?.description ?? "a text";
    default:
      return "a number";
  }
}
