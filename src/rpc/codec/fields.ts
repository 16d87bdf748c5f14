/** Properties of request and response fields, from the contract: presence, names, ranges and text forms. */
import { type DescEnum, type DescField, getOption, ScalarType } from "@bufbuild/protobuf";
import { bounds, form, latest, TextForm as Form } from "../../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { field_behavior, FieldBehavior } from "../../../gen/google/api/field_behavior_pb.js";
import { toBareHash, toHash, toPublicKey } from "../../base/crypto/parse-hash.js";
import { addressForm } from "../../base/crypto/signing-payloads.js";
import { latestKeyword } from "../../base/latest-block.js";

/**
 * Returns true if a field can be unset: an `optional` field or a member of a `oneof`. Other fields always have a value;
 * for messages that is the empty message.
 */
export function mayBeUnset(field: DescField): boolean {
  return field.proto.proto3Optional || field.oneof !== undefined;
}

export function isRequired(field: DescField): boolean {
  return getOption(field, field_behavior).includes(FieldBehavior.REQUIRED);
}

/** Returns the lowercase names of an enum by number: the names of the values without the enum's own prefix. */
export function enumNames({ values, sharedPrefix = "" }: DescEnum): Map<number, string> {
  return new Map(
    values.map(({ number, name }) => {
      const lower = name.toLowerCase();
      return [number, lower.startsWith(sharedPrefix) ? lower.slice(sharedPrefix.length) : lower];
    }),
  );
}

export interface Range {
  readonly min: bigint;
  readonly max: bigint;
}

/**
 * Returns the range of an integer field: the bounds of the contract, or else those of its type. Undefined for other
 * types.
 */
export function rangeOf(field: DescField): Range | undefined {
  const bits = integerBits[field.scalar!];
  if (bits === undefined) {
    return undefined;
  }
  const { min, max } = getOption(field, bounds);
  return bits < 0
    ? { min: min ?? -(2n ** BigInt(-bits - 1)), max: max ?? 2n ** BigInt(-bits - 1) - 1n }
    : { min: min ?? 0n, max: max ?? 2n ** BigInt(bits) - 1n };
}

/** Bits of the integer types; negative for signed ones. */
export const integerBits: Readonly<Partial<Record<ScalarType, number>>> = {
  [ScalarType.INT32]: -32,
  [ScalarType.SINT32]: -32,
  [ScalarType.SFIXED32]: -32,
  [ScalarType.UINT32]: 32,
  [ScalarType.FIXED32]: 32,
  [ScalarType.INT64]: -64,
  [ScalarType.SINT64]: -64,
  [ScalarType.SFIXED64]: -64,
  [ScalarType.UINT64]: 64,
  [ScalarType.FIXED64]: 64,
};

/** Returns true if a type is an integer of 64 bits, which is a bigint in messages. */
export function isLong(type: ScalarType | undefined): boolean {
  return Math.abs(integerBits[type!] ?? 0) === 64;
}

/** Text form in requests (`gatehouse.annotations.v1.form`). */
export interface TextForm {
  /** Regular expression that matches every accepted spelling. */
  readonly pattern: string;
  /** Description of the form, to follow "must be". */
  readonly description: string;
  /** Returns the text as services expect it; undefined for a text of another form. */
  readonly read: (text: string) => string | undefined;
}

const textForms: Readonly<Record<Exclude<Form, Form.UNSPECIFIED>, TextForm>> = {
  [Form.PUBLIC_KEY]: {
    pattern: "^(ed25519:)?(0x)?[0-9a-fA-F]{64}$",
    description: "an Ed25519 public key of 64 hex digits, with or without ed25519: and 0x before them",
    read: toPublicKey,
  },
  [Form.HASH]: {
    pattern: "^(0x)?[0-9a-fA-F]{64}$",
    description: "64 hex digits, with or without 0x before them",
    read: toBareHash,
  },
  [Form.FIELD_ELEMENT]: { pattern: "^0x[0-9a-fA-F]{64}$", description: "0x and 64 hex digits", read: toHash },
  [Form.PROGRAM_ADDRESS]: {
    pattern: addressForm.source,
    description: "stor- and 40 lower-case hex digits",
    read: (text) => (addressForm.test(text) ? text : undefined),
  },
};

/** Returns the form that the contract sets for a field; undefined if any text is valid. */
export function formOf(field: DescField): TextForm | undefined {
  const declared = getOption(field, form);
  return declared === Form.UNSPECIFIED ? undefined : textForms[declared];
}

/**
 * Returns a description of the values that a field or a list item accepts, to follow "must be".
 *
 * @param nameOf returns the name of an enum value in this protocol. By default the name in the contract.
 */
export function expectationOf(
  field: DescField,
  nameOf = (number: number): string => field.enum!.value[number]!.name,
): string {
  const range = rangeOf(field);
  if (range !== undefined) {
    return `a whole number from ${range.min} to ${range.max}${getOption(field, latest) ? `, or ${latestKeyword}` : ""}`;
  }
  if (field.enum !== undefined) {
    const numbers = field.enum.values.map(({ number }) => number).filter((number) => number !== 0);
    return `one of ${numbers.map(nameOf).join(", ")}`;
  }
  switch (field.scalar) {
    case undefined:
      return "an object";
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

type Message = Record<string, unknown>;

/** Returns the value of a singular field; undefined if another member of its oneof is set. */
export function readField(message: object, { oneof, localName }: DescField): unknown {
  if (oneof === undefined) {
    return (message as Message)[localName];
  }
  const chosen = (message as Message)[oneof.localName] as { readonly case?: string; readonly value?: unknown };
  return chosen.case === localName ? chosen.value : undefined;
}

/** Sets a singular field, or appends the value to a list. */
export function putField(message: object, { fieldKind, oneof, localName }: DescField, value: unknown): void {
  const fields = message as Message;
  if (fieldKind === "list") {
    (fields[localName] as unknown[]).push(value);
  } else if (oneof === undefined) {
    fields[localName] = value;
  } else {
    fields[oneof.localName] = { case: localName, value };
  }
}
