/** Types of JSON values, as responses name them. */
import { ValueType } from "../../../gen/gatehouse/storage/v1/storage_pb.js";
import type { JsonType } from "./json-text.js";

export const valueTypes: Readonly<Record<JsonType, ValueType>> = {
  string: ValueType.STRING,
  number: ValueType.NUMBER,
  boolean: ValueType.BOOLEAN,
  array: ValueType.ARRAY,
  object: ValueType.OBJECT,
  null: ValueType.NULL,
};
