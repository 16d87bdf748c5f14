/**
 * Values in responses to reads of programs: reasons and messages of rejected reads, and types. Shared by the node and
 * by clients that verify a response with a proof, so this module does not depend on Node.js.
 */
import { ValueType } from "../../../gen/gatehouse/storage/v1/storage_pb.js";
import { addressForm } from "../../base/crypto/signing-payloads.js";
import type { JsonType } from "../documents/json-text.js";

/** Types of JSON values, as responses name them. */
export const valueTypes: Readonly<Record<JsonType, ValueType>> = {
  string: ValueType.STRING,
  number: ValueType.NUMBER,
  boolean: ValueType.BOOLEAN,
  array: ValueType.ARRAY,
  object: ValueType.OBJECT,
  null: ValueType.NULL,
};

/** Reason and message of a rejection: the arguments of an RpcError. */
export type RejectionArgs = readonly [
  "NOT_FOUND" | "FIELD_NOT_FOUND" | "INVALID_FIELD_TYPE" | "INDEX_OUT_OF_BOUNDS" | "INVALID_REQUEST",
  string,
];

/** Returns true if a text has the form of a program's address. */
export function isAddress(address: string): boolean {
  return addressForm.test(address);
}

export const programNotFound: RejectionArgs = ["NOT_FOUND", "There is no storage program at this address."];

export function fieldNotFound(name: string): RejectionArgs {
  return ["FIELD_NOT_FOUND", `The program has no field ${JSON.stringify(name.slice(0, 100))}.`];
}

/** @param type type of the program's document. */
export function notAnObject(type: JsonType | "binary"): RejectionArgs {
  return ["INVALID_FIELD_TYPE", `The program has no fields: its data is ${descriptions[type]}, not an object.`];
}

/** @param type type of the field's value. */
export function notAnArray(type: JsonType): RejectionArgs {
  return ["INVALID_FIELD_TYPE", `The field holds ${type === "object" ? "an" : "a"} ${type}, not an array.`];
}

/** @param length length of the array. */
export function itemNotFound(length: number): RejectionArgs {
  return ["INDEX_OUT_OF_BOUNDS", `The array has ${length} items; an index starts at 0.`];
}

const descriptions = {
  object: "an object",
  array: "an array",
  string: "a string",
  number: "a number",
  boolean: "a boolean",
  null: "empty",
  binary: "binary",
} as const;
