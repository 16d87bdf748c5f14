/**
 * JSON Schema (2020-12) of messages: responses by the rules of the JSON encoder, requests by those of standard protobuf
 * JSON. All machine-readable API descriptions use these schemas.
 */
import { type DescEnum, type DescField, type DescMessage, getOption, ScalarType } from "@bufbuild/protobuf";
import {
  bounds,
  latest,
  omit_when_unset,
  raw_json,
  unwrap,
} from "../../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { latestKeyword } from "../../base/latest-block.js";
import { commentOf, described } from "./comments.js";
import { enumNames, formOf, integerBits, isRequired, mayBeUnset } from "../codec/fields.js";
import { fullNameOf } from "../service.js";

export type JsonSchema = Readonly<Record<string, unknown>>;

export type Schemas = ReturnType<typeof createSchemas>;

/**
 * Creates a schema builder. Responses follow the JSON profile, requests standard protobuf JSON.
 *
 * @param base prefix of references to definitions, such as `#/components/schemas/`.
 */
export function createSchemas(direction: "response" | "request", base: string) {
  const definitions = new Map<string, JsonSchema>();
  const isResponse = direction === "response";

  /** Returns the schema of a message, as a reference. */
  function message(desc: DescMessage): JsonSchema {
    if (desc.typeName === "google.protobuf.Timestamp") {
      return { type: "string", format: "date-time" };
    }
    const name = nameOf(desc.typeName);
    if (!definitions.has(name)) {
      definitions.set(name, {});
      definitions.set(name, { ...described(commentOf(desc.typeName)), ...defineMessage(desc) });
    }
    return { $ref: `${base}${name}` };
  }

  function nameOf(typeName: string): string {
    const short = typeName.replace(/^gatehouse\.(\w+)\.v1\./, "$1.").replace(/[^A-Za-z0-9._-]/g, "_");
    return isResponse ? short : `${short}.Input`;
  }

  function defineMessage(desc: DescMessage): JsonSchema {
    const [only] = desc.fields;
    if (isResponse && getOption(desc, unwrap) && only !== undefined) {
      return field(only);
    }
    const properties = Object.fromEntries(
      desc.fields.map((member) => [member.jsonName, { ...described(commentOf(fullNameOf(member))), ...field(member) }]),
    );
    const required = desc.fields.filter(isResponse ? isAlwaysWritten : isRequired).map(({ jsonName }) => jsonName);
    return { type: "object", properties, ...(required.length > 0 && { required }) };
  }

  function field(member: DescField): JsonSchema {
    switch (member.fieldKind) {
      case "list":
        return isResponse ? { type: "array", items: element(member) } : listSchema(member, element(member));
      case "map":
        return { type: "object", additionalProperties: element(member) };
      default:
        return isResponse && mayBeNull(member) ? nullable(element(member)) : element(member);
    }
  }

  function element(member: DescField): JsonSchema {
    if (member.message !== undefined) {
      return message(member.message);
    }
    if (member.enum !== undefined) {
      return isResponse ? { type: "string", enum: namesOf(member.enum) } : protobufEnum(member.enum);
    }
    if (isResponse && getOption(member, raw_json)) {
      return {};
    }
    return isResponse
      ? scalarSchema(member.scalar, "integer")
      : orLatest(member, boundedSchema(member, ["integer", "string"]));
  }

  return {
    message,
    field,
    /** Returns every referenced schema, by name. */
    definitions: (): Readonly<Record<string, JsonSchema>> =>
      Object.fromEntries([...definitions].sort(([a], [b]) => (a < b ? -1 : 1))),
  };
}

/** Returns the schema of a path or query value. All values are text; 64-bit numbers are digits. */
export function parameterSchema(field: DescField): JsonSchema {
  const schema =
    field.enum === undefined
      ? orLatest(field, boundedSchema(field, "integer"))
      : { type: "string", enum: namesOf(field.enum) };
  return field.fieldKind === "list" ? listSchema(field, schema) : schema;
}

function listSchema(field: DescField, items: JsonSchema): JsonSchema {
  const { maxItems } = getOption(field, bounds);
  return { type: "array", items, ...(maxItems !== undefined && { maxItems }) };
}

/** Returns the schema of a request value, with the bounds of the contract. */
function boundedSchema(field: DescField, integer64: string | readonly string[]): JsonSchema {
  const schema = scalarSchema(field.scalar ?? ScalarType.STRING, integer64);
  const { min, max, minCharacters, maxCharacters } = getOption(field, bounds);
  const pattern = formOf(field)?.pattern;
  return {
    ...schema,
    ...(min !== undefined && { minimum: Number(min) }),
    ...(max !== undefined && { maximum: Number(max) }),
    ...(minCharacters !== undefined && { minLength: minCharacters }),
    ...(maxCharacters !== undefined && { maxLength: maxCharacters }),
    ...(pattern !== undefined && { pattern }),
  };
}

/** Adds the keyword for the latest block to the schema of a block number, if the contract permits the keyword. */
function orLatest(field: DescField, schema: JsonSchema): JsonSchema {
  return getOption(field, latest) ? { anyOf: [schema, { type: "string", const: latestKeyword }] } : schema;
}

/** @param integer64 types of a 64-bit number. */
function scalarSchema(type: ScalarType, integer64: string | readonly string[]): JsonSchema {
  const bits = integerBits[type];
  if (bits !== undefined) {
    return { type: Math.abs(bits) === 64 ? integer64 : "integer", ...(bits > 0 && { minimum: 0 }) };
  }
  switch (type) {
    case ScalarType.BOOL:
      return { type: "boolean" };
    case ScalarType.STRING:
      return { type: "string" };
    case ScalarType.BYTES:
      return { type: "string", contentEncoding: "base64" };
    default:
      return { type: "number" };
  }
}

function mayBeNull(field: DescField): boolean {
  return mayBeUnset(field) && isAlwaysWritten(field);
}

function isAlwaysWritten(field: DescField): boolean {
  return !getOption(field, omit_when_unset) && field.oneof === undefined;
}

function nullable(schema: JsonSchema): JsonSchema {
  const { type, enum: names } = schema as { type?: string; enum?: string[] };
  if (names !== undefined) {
    return { ...schema, type: [type, "null"], enum: [...names, null] };
  }
  if (Object.keys(schema).length === 0) {
    return schema;
  }
  return typeof type === "string" ? { ...schema, type: [type, "null"] } : { anyOf: [schema, { type: "null" }] };
}

/** Returns the names of an enum without the zero value, which means unset and is never sent. */
function namesOf(desc: DescEnum): string[] {
  return [...enumNames(desc).values()].filter((name) => name !== "unspecified");
}

function protobufEnum(desc: DescEnum): JsonSchema {
  return { type: "string", enum: desc.values.filter(({ number }) => number !== 0).map(({ name }) => name) };
}
