/**
 * Validation of requests against the bounds and text forms of the contract, and normalization of texts to the form that
 * services expect. Rules are compiled once per message type, for all protocols.
 */
import { type DescField, type DescMessage, fromBinary, getOption, hasOption, ScalarType } from "@bufbuild/protobuf";
import { type Bounds, bounds as boundsOption } from "../../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { RpcError } from "../errors.js";
import { invalidValue } from "../parameters.js";
import { hasMoreFields } from "./field-count.js";
import { expectationOf, formOf, isRequired, rangeOf } from "./fields.js";

/** Returns the name of a field as the caller writes it. */
export type NameOf = (field: DescField) => string;

/** Returns the field name of plain HTTP, JSON-RPC and JSON in general. */
export const jsonNameOf: NameOf = ({ jsonName }) => jsonName;
/** Returns the field name of binary protocols. */
export const protoNameOf: NameOf = ({ name }) => name;

/** Checks a value, and returns it as services expect it. */
type Rule = (value: unknown, nameOf: NameOf) => unknown;

/**
 * Checks a request, and normalizes texts in place.
 *
 * @throws RpcError INVALID_REQUEST
 */
type CheckRequest = (message: object, nameOf: NameOf) => void;

/** Limit on the fields of a request in binary. A block of 4 MiB with the smallest transactions has fewer. */
const maxFields = 100_000;
/** Bytes that cannot hold more fields than that: a field takes at least two. */
const minCountedBytes = 2 * maxFields;

const validators = new WeakMap<DescMessage, CheckRequest>();

/** Returns the check of a request message. Fields of nested messages are checked elsewhere. */
export function requestValidator(desc: DescMessage): CheckRequest {
  let check = validators.get(desc);
  if (check === undefined) {
    check = compile(desc);
    validators.set(desc, check);
  }
  return check;
}

/**
 * Creates the decoder of a request message from the protobuf wire format.
 *
 * @returns a function from bytes to the message. It throws RpcError INVALID_REQUEST if the bytes are malformed, or if a
 * field violates the contract.
 */
export function requestDecoder(desc: DescMessage): (bytes: Uint8Array) => object {
  const check = requestValidator(desc);
  return (bytes) => {
    let message: object;
    try {
      if (bytes.length > minCountedBytes && hasMoreFields(desc, bytes, maxFields)) {
        throw new RpcError("INVALID_REQUEST", `The request has more than ${maxFields} fields.`);
      }
      // The node does not forward requests, so it needs no unknown fields.
      message = fromBinary(desc, bytes, { readUnknownFields: false });
    } catch (error) {
      throw error instanceof RpcError
        ? error
        : new RpcError("INVALID_REQUEST", `The request is not a valid ${desc.typeName}.`);
    }
    check(message, protoNameOf);
    return message;
  };
}

function compile(desc: DescMessage): CheckRequest {
  const rules = desc.fields.flatMap((field) => {
    const rule = field.message === undefined ? ruleOf(field) : undefined;
    return rule === undefined ? [] : [{ key: field.localName, rule }];
  });
  return (message, nameOf) => {
    const fields = message as Record<string, unknown>;
    for (const { key, rule } of rules) {
      if (fields[key] !== undefined) {
        fields[key] = rule(fields[key], nameOf);
      }
    }
  };
}

function ruleOf(field: DescField): Rule | undefined {
  const bounds = hasOption(field, boundsOption) ? getOption(field, boundsOption) : undefined;
  const rule = scalarRule(field, bounds);
  const max = bounds?.maxItems ?? Infinity;
  if (field.fieldKind !== "list" || (rule === undefined && max === Infinity)) {
    return field.oneof === undefined ? rule : undefined;
  }
  return (value, nameOf) => {
    const items = value as readonly unknown[];
    if (items.length > max) {
      throw new RpcError("INVALID_REQUEST", `${nameOf(field)} must have at most ${max} items, not ${items.length}.`);
    }
    return rule === undefined ? items : items.map((item) => rule(item, nameOf));
  };
}

function scalarRule(field: DescField, bounds: Bounds | undefined): Rule | undefined {
  const form = formOf(field);
  if (form !== undefined) {
    return valueRule(field, (value) => form.read(value as string));
  }
  if (bounds === undefined) {
    return undefined;
  }
  if (field.enum !== undefined) {
    const { value: values } = field.enum;
    return valueRule(field, (value) => (value !== 0 && values[value as number] !== undefined ? value : undefined));
  }
  const range = rangeOf(field);
  if (range !== undefined) {
    return valueRule(field, (value) => {
      const number = value as number | bigint;
      return number >= range.min && number <= range.max ? value : undefined;
    });
  }
  return field.scalar === ScalarType.STRING ? lengthRule(field, bounds) : undefined;
}

/** @param read returns the value as services expect it; undefined if it is invalid. */
function valueRule(field: DescField, read: (value: unknown) => unknown): Rule {
  const expected = expectationOf(field);
  return (value, nameOf) => {
    const valid = read(value);
    if (valid === undefined) {
      throw invalidValue(nameOf(field), expected, value);
    }
    return valid;
  };
}

function lengthRule(field: DescField, { minCharacters = 0, maxCharacters = Infinity }: Bounds): Rule {
  const range = `${minCharacters} to ${maxCharacters} characters`;
  return (value, nameOf) => {
    const text = value as string;
    if (text === "" && minCharacters > 0 && isRequired(field)) {
      throw new RpcError("INVALID_REQUEST", `${nameOf(field)} is required: ${range}.`);
    }
    // A character has at most two UTF-16 units, so most texts need no exact count.
    const length =
      text.length <= maxCharacters && text.length >= 2 * minCharacters ? text.length : Array.from(text).length;
    if (length < minCharacters || length > maxCharacters) {
      throw new RpcError("INVALID_REQUEST", `${nameOf(field)} must have ${range}, not ${length}.`);
    }
    return value;
  };
}
