/** Flat list of a schema's fields, each with its path, such as `peers[].sync.block`. */
import type { JsonSchema } from "./json-schema.js";

export interface FieldLine {
  /** Path of the field; empty for the entire value. */
  readonly path: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly description: string;
}

/** @param definitions schemas by the last part of their reference. */
export function listFields(schema: JsonSchema, definitions: Readonly<Record<string, JsonSchema>>): FieldLine[] {
  const lines: FieldLine[] = [];

  /** @param enclosing names of the enclosing messages; a recursive message is listed once. */
  function visit(visited: JsonSchema, path: string, enclosing: readonly string[]): void {
    const { value, name } = resolve(visited, definitions);
    if (name !== undefined && enclosing.includes(name)) {
      return;
    }
    const nested = name === undefined ? enclosing : [...enclosing, name];
    const { properties, items, additionalProperties } = value as Composite;
    if (items !== undefined) {
      visit(items, `${path}[]`, nested);
    } else if (additionalProperties !== undefined) {
      visit(additionalProperties, `${path}.*`, nested);
    }
    const required = (value["required"] ?? []) as readonly string[];
    for (const [key, property] of Object.entries(properties ?? {})) {
      const fieldPath = path === "" ? key : `${path}.${key}`;
      lines.push({
        path: fieldPath,
        type: typeOf(property, definitions),
        isRequired: required.includes(key),
        description: (property["description"] ?? "") as string,
      });
      visit(property, fieldPath, nested);
    }
  }

  visit(schema, "", []);
  return lines.length > 0
    ? lines
    : [{ path: "", type: typeOf(schema, definitions), isRequired: true, description: "" }];
}

interface Composite {
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly items?: JsonSchema;
  readonly additionalProperties?: JsonSchema;
}

/** Resolves references, and unwraps schemas that only add null. */
function resolve(
  schema: JsonSchema,
  definitions: Readonly<Record<string, JsonSchema>>,
): { readonly value: JsonSchema; readonly name: string | undefined; readonly isNullable: boolean } {
  const choices = schema["anyOf"] as readonly JsonSchema[] | undefined;
  const nonNull = choices?.[0] ?? schema;
  const name = (nonNull["$ref"] as string | undefined)?.split("/").at(-1);
  return {
    value: name === undefined ? nonNull : (definitions[name] ?? {}),
    name,
    isNullable: choices?.some(({ type }) => type === "null") === true,
  };
}

/** Describes a type: `integer or null`, `list of string`, `one of ok, failing`. */
export function typeOf(schema: JsonSchema, definitions: Readonly<Record<string, JsonSchema>>): string {
  const { value, isNullable } = resolve(schema, definitions);
  const { items, additionalProperties } = value as Composite;
  const types = [value["type"] ?? "any JSON"].flat().map(String);
  const values = (value["enum"] as readonly unknown[] | undefined)?.filter((value) => value !== null);
  const named = types.map((type) => {
    if (type === "array") {
      return `list of ${items === undefined ? "any JSON" : typeOf(items, definitions)}`;
    }
    if (type === "object" && additionalProperties !== undefined) {
      return `${typeOf(additionalProperties, definitions)} by name`;
    }
    return type === "string" ? (nameString(value, values) ?? type) : type;
  });
  return [...named, ...(isNullable ? ["null"] : [])].join(" or ");
}

function nameString(value: JsonSchema, values: readonly unknown[] | undefined): string | undefined {
  if (values !== undefined) {
    return `one of ${values.join(", ")}`;
  }
  return value["contentEncoding"] === "base64" ? "base64" : (value["format"] as string | undefined);
}
