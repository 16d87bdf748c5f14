/** What the contract says of whether a field is there. */
import { type DescField, getOption } from "@bufbuild/protobuf";
import { field_behavior, FieldBehavior } from "../../../gen/google/api/field_behavior_pb.js";

/** Whether a field can be unset: it is `optional`, or one of a `oneof`. What cannot has a value, a message its empty one. */
export function mayBeUnset(field: DescField): boolean {
  return field.proto.proto3Optional || field.oneof !== undefined;
}

/** Whether a request must have the field. */
export function isRequired(field: DescField): boolean {
  return getOption(field, field_behavior).includes(FieldBehavior.REQUIRED);
}
