/**
 * Why reads of programs are refused, as reason and sentence: for the node, and for whoever proves that it has to be so.
 * Nothing here needs Node.js.
 */
import { addressForm } from "../../base/crypto/signing-payloads.js";
import type { JsonType } from "../documents/json-text.js";

/** As a failure takes it. */
export type Refusal = readonly [
  "NOT_FOUND" | "FIELD_NOT_FOUND" | "INVALID_FIELD_TYPE" | "INDEX_OUT_OF_BOUNDS" | "INVALID_REQUEST",
  string,
];

export function isAddress(address: string): boolean {
  return addressForm.test(address);
}

export const noProgram: Refusal = ["NOT_FOUND", "There is no storage program at this address."];

export function noField(name: string): Refusal {
  return ["FIELD_NOT_FOUND", `The program has no field ${JSON.stringify(name.slice(0, 100))}.`];
}

/** @param type what the program's document is. */
export function noFields(type: JsonType | "binary"): Refusal {
  return ["INVALID_FIELD_TYPE", `The program has no fields: its data is ${descriptions[type]}, not an object.`];
}

/** @param type what the field holds. */
export function noArray(type: JsonType): Refusal {
  return ["INVALID_FIELD_TYPE", `The field holds ${type === "object" ? "an" : "a"} ${type}, not an array.`];
}

/** @param length of the array. */
export function noItem(length: number): Refusal {
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
