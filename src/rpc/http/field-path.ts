/** Fields of a request that a path or a query names: those of the message, and those of messages in it, as in `book.author.name`. */
import { create, type DescField, type DescMessage } from "@bufbuild/protobuf";

type Message = Record<string, unknown>;

/** A field, and where it stands in a message. */
export interface FieldPath {
  readonly field: DescField;
  /** Its name, and those on the way to it, as requests in JSON have them. */
  readonly jsonPath: string;
  /** Gives the field a value, or a list one more. */
  readonly put: (message: object, value: unknown) => void;
}

/** How deep a field may stand: nobody needs more, and messages may hold themselves. */
const maxDepth = 16;

/**
 * Finds a field by its name, or by the names on the way to it, joined with dots.
 *
 * @param nameOf which of its names a field goes by.
 * @returns undefined where there is none.
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
  return { field, jsonPath, put: (message, value) => put(within(message, fields), field, value) };
}

/** The message in a message, made where it is not there yet. */
function within(message: object, fields: readonly DescField[]): Message {
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
