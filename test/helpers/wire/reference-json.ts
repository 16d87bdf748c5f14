/**
 * Encodes a message as plain JSON by docs/json-profile.md, with reflection. It shares no code with the compiled
 * encoder, which is compared with it. Numbers beyond 2^53 are bigints in the result.
 */
import { type DescEnum, type DescField, getOption, type Message, ScalarType } from "@bufbuild/protobuf";
import { reflect, type ReflectList, type ReflectMap, type ReflectMessage } from "@bufbuild/protobuf/reflect";
import type { DescMessage } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { omit_when_unset, raw_json, unwrap } from "../../../gen/gatehouse/annotations/v1/annotations_pb.js";

const isUnwrapped = onceForEach((message: DescMessage) => getOption(message, unwrap));
const isOmitted = onceForEach((field: DescField) => getOption(field, omit_when_unset));
const isRawJson = onceForEach((field: DescField) => getOption(field, raw_json));

/** Cached options, because reading one takes longer than encoding a message. */
function onceForEach<T extends object>(look: (desc: T) => boolean): (desc: T) => boolean {
  const known = new WeakMap<T, boolean>();
  return (desc) => {
    const found = known.get(desc) ?? look(desc);
    known.set(desc, found);
    return found;
  };
}

/** Returns JSON text with members in the order of the proto file. */
export function referenceJson(desc: DescMessage, message: Message): string {
  return messageJson(reflect(desc, message));
}

function messageJson(message: ReflectMessage): string {
  if (message.desc.typeName === "google.protobuf.Timestamp") {
    const { seconds, nanos } = message.message as Timestamp;
    const date = new Date(Number(seconds) * 1000).toISOString().slice(0, 19);
    return `"${date}.${String(Math.floor(nanos / 1_000_000)).padStart(3, "0")}Z"`;
  }
  if (isUnwrapped(message.desc)) {
    return fieldJson(message, message.desc.fields[0]!) ?? "null";
  }
  const members: string[] = [];
  for (const member of message.desc.members) {
    const field = member.kind === "oneof" ? message.oneofCase(member) : member;
    if (field === undefined) {
      continue;
    }
    const text = fieldJson(message, field);
    if (text !== undefined) {
      members.push(`${JSON.stringify(field.jsonName)}:${text}`);
    } else if (!isOmitted(field)) {
      members.push(`${JSON.stringify(field.jsonName)}:null`);
    }
  }
  return `{${members.join(",")}}`;
}

function fieldJson(message: ReflectMessage, field: DescField): string | undefined {
  const omit = isOmitted(field);
  switch (field.fieldKind) {
    case "list": {
      const items = [...(message.get(field) as ReflectList)].map((item) => valueJson(field, item));
      return items.length === 0 && omit ? undefined : `[${items.join(",")}]`;
    }
    case "map": {
      const entries = [...(message.get(field) as ReflectMap)].map(
        ([key, value]) => `${JSON.stringify(String(key))}:${valueJson(field, value)}`,
      );
      return entries.length === 0 && omit ? undefined : `{${entries.join(",")}}`;
    }
    default: {
      const isExplicit = field.proto.proto3Optional || field.oneof !== undefined;
      return isExplicit && !message.isSet(field) ? undefined : valueJson(field, message.get(field));
    }
  }
}

function valueJson(field: DescField, value: unknown): string {
  if (field.message !== undefined) {
    return messageJson(value as ReflectMessage);
  }
  if (field.enum !== undefined) {
    return enumJson(field.enum, value as number);
  }
  if (isRawJson(field)) {
    return value === "" ? "null" : (value as string);
  }
  switch (field.scalar) {
    case ScalarType.STRING:
      return JSON.stringify(value);
    case ScalarType.BYTES:
      return JSON.stringify(Buffer.from(value as Uint8Array).toString("base64"));
    case ScalarType.FLOAT:
    case ScalarType.DOUBLE:
      return JSON.stringify(value);
    default:
      return String(value);
  }
}

function enumJson(desc: DescEnum, number: number): string {
  const prefix = `${desc.name.replace(/(?<=[a-z0-9])([A-Z])/g, "_$1").toUpperCase()}_`;
  const name = desc.values.find((value) => value.number === number)?.name;
  return name === undefined ? String(number) : `"${name.replace(prefix, "").toLowerCase()}"`;
}
