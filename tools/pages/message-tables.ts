/** Generates tables of the messages in a proto file, from which the explorer decodes messages. */
import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [source, compiled] = [resolve("gen"), resolve("dist/gen")];

/**
 * Returns the text of the module that replaces a generated one. Enums and services are left out; an import of one fails
 * the build.
 *
 * @param path of the generated file, below gen/, without its extension.
 */
export async function messageTables(path: string): Promise<string> {
  const module = (await import(pathToFileURL(path.replace(source, compiled) + ".js").href)) as Record<string, unknown>;
  const messages = Object.values(module).filter(isMessage);
  const elsewhere = messages
    .flatMap(({ fields }) => fields.flatMap(({ message }) => message ?? []))
    .filter((message) => message.file !== messages[0]?.file && isOurs(message));
  return [
    ...[...new Set(elsewhere)].map(
      (message) =>
        `import { ${nameOf(message)} } from ${JSON.stringify(`${resolve(source, message.file.name)}_pb.js`)};`,
    ),
    ...messages.map(
      (message) =>
        `export const ${nameOf(message)} = { typeName: "${message.typeName}", fields: () => [${message.fields.map(rowOf).join(", ")}] };`,
    ),
  ].join("\n");
}

function isMessage(value: unknown): value is DescMessage {
  return (Object(value) as { kind?: unknown }).kind === "message";
}

function isOurs({ file }: DescMessage): boolean {
  return file.name.startsWith("gatehouse/");
}

function nameOf({ typeName, file }: DescMessage): string {
  return `${typeName.slice(file.proto.package.length + 1).replaceAll(".", "_")}Schema`;
}

/** Kinds of fields, as src/pages/explore/protobuf.ts defines them. */
function rowOf(field: DescField): string {
  const { number, localName, jsonName, oneof } = field;
  const presence =
    oneof !== undefined ? "oneof" : field.fieldKind === "list" ? "list" : isOptional(field) ? "optional" : "implicit";
  const texts = [localName, jsonName].map((name) => JSON.stringify(name)).join(", ");
  const last = oneof === undefined ? "" : `, ${JSON.stringify(oneof.localName)}`;
  return `[${number}, ${texts}, ${holds(field)}, "${presence}"${last}]`;
}

function isOptional({ presence }: DescField): boolean {
  return presence !== FeatureSet_FieldPresence.IMPLICIT;
}

/** Returns undefined for a kind that occurs in no proof; decoding such a message throws. */
function holds(field: DescField): string {
  if (field.message !== undefined && field.fieldKind !== "map" && isOurs(field.message)) {
    return nameOf(field.message);
  }
  if (field.enum !== undefined) {
    return '"int32"';
  }
  return field.fieldKind !== "map" && field.scalar !== undefined
    ? `"${ScalarType[field.scalar].toLowerCase()}"`
    : "undefined";
}
