/** Presence rules that the contract sets for fields. */
import { type DescField, getOption } from "@bufbuild/protobuf";
import { field_behavior, FieldBehavior } from "../../../gen/google/api/field_behavior_pb.js";

/**
 * Returns true if a field can be unset: an `optional` field or a member of a `oneof`. Other fields always have a value;
 * for messages that is the empty message.
 */
export function mayBeUnset(field: DescField): boolean {
  return field.proto.proto3Optional || field.oneof !== undefined;
}

/** Returns true if requests must contain the field. */
export function isRequired(field: DescField): boolean {
  return getOption(field, field_behavior).includes(FieldBehavior.REQUIRED);
}
