/**
 * Request fields named in a path or a query: fields of the message and of nested messages, such as `book.author.name`.
 */
import { create, type DescField, type DescMessage } from "@bufbuild/protobuf";

type Message = Record<string, unknown>;

/** Field with its location in a message. */
export interface FieldPath {
  readonly field: DescField;
  /** Dotted path of the field, with JSON names. */
  readonly jsonPath: string;
  /** Sets the value of the field, or appends the value to a list. */
  readonly put: (message: object, value: unknown) => void;
}

/** Limit on the depth of a field, because messages may be recursive. */
const maxDepth = 16;

/**
 * Finds a field by its name, or by the dotted path of names to it.
 *
 * @param nameOf returns the name by which fields are matched.
 * @returns undefined if there is no such field.
 */
export function findField(
  input: DescMessage,
  path: string,
  nameOf: (field: DescField) => string,
): FieldPath | undefined {
  const names = path.split(".", maxDepth + 1);
  const fields: DescField[] = [];
  let desc: DescMessage | undefined = input;
  for (const name of names) {
    const field: DescField | undefined = desc?.fields.find((candidate) => nameOf(candidate) === name);
    if (field === undefined) {
      return undefined;
    }
    fields.push(field);
    desc = field.fieldKind === "message" ? field.message : undefined;
  }
  if (names.length > maxDepth) {
    return undefined;
  }
  const jsonPath = fields.map(({ jsonName }) => jsonName).join(".");
  const field = fields.pop()!;
  return { field, jsonPath, put: (message, value) => put(nestedMessage(message, fields), field, value) };
}

/** Returns the nested message at a path. Creates missing messages. */
function nestedMessage(message: object, fields: readonly DescField[]): Message {
  let inner = message as Message;
  for (const field of fields) {
    let next = read(inner, field);
    if (next === undefined) {
      next = create(field.message!);
      write(inner, field, next);
    }
    inner = next as Message;
  }
  return inner;
}

function put(message: Message, field: DescField, value: unknown): void {
  if (field.fieldKind === "list") {
    (message[field.localName] as unknown[]).push(value);
  } else {
    write(message, field, value);
  }
}

function read(message: Message, { oneof, localName }: DescField): unknown {
  if (oneof === undefined) {
    return message[localName];
  }
  const chosen = message[oneof.localName] as { readonly case?: string; readonly value?: unknown };
  return chosen.case === localName ? chosen.value : undefined;
}

function write(message: Message, { oneof, localName }: DescField, value: unknown): void {
  if (oneof === undefined) {
    message[localName] = value;
  } else {
    message[oneof.localName] = { case: localName, value };
  }
}
