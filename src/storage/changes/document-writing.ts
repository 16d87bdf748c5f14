/**
 * Writes full documents. A large document is parsed and stored in portions, and yields to the event loop between them.
 */
import { yieldToEventLoop } from "../../base/async/yielding.js";
import { eachMember } from "../documents/document.js";
import { chunkLength, eachChunk, eachField, maxTextBytes } from "../documents/document-parts.js";
import { typeOfJson } from "../documents/json-text.js";
import type { DocumentState, ProgramContent } from "../programs/programs.js";
import type { DocumentRows, FieldColumns, NewChunk, NewField } from "./document-rows-store.js";

/**
 * Gap between the positions of chunks that are stored together. Chunks that result from a split use positions in the
 * gap.
 */
export const chunkGap = 2 ** 20;

/** Limits on the fields and the UTF-16 code units that are parsed and stored before yielding to the event loop. */
const portionRows = 500;
const portionLength = 128 * 1024;

/** Returns true if this content is stored in parts. */
export function isStoredInParts(content: ProgramContent): boolean {
  return content?.type === "object" && content.sizeBytes > maxTextBytes;
}

/** Stores the contents of a program that has no document rows. */
export async function writeContent(rows: DocumentRows, content: NonNullable<ProgramContent>): Promise<void> {
  const { text, type } = content;
  if (isStoredInParts(content)) {
    await writeParts(rows, text);
    rows.onWritten(text);
    return;
  }
  await rows.saveText(text);
  if (type === "object") {
    const fields = Array.from(eachMember(text), ({ name, valueStart, valueEnd }) => ({
      name,
      ...plainField(text.slice(valueStart, valueEnd)),
    }));
    rows.insertFields(0, fields);
  }
}

/** Returns the columns of a field in a document that is stored as one text. */
export function plainField(value: string): FieldColumns {
  return { type: typeOfJson(value), before: "", value, sizeBytes: 0, items: undefined };
}

/** Stores an object document in full after it crossed a size limit, in the form that suits its new size. */
export async function rewrite(rows: DocumentRows, before: DocumentState, text: string): Promise<DocumentState> {
  const content = { encoding: "json", type: "object", text, sizeBytes: Buffer.byteLength(text) } as const;
  await rows.clear(before);
  await writeContent(rows, content);
  return { sizeBytes: content.sizeBytes, inParts: isStoredInParts(content) };
}

async function writeParts(rows: DocumentRows, text: string): Promise<void> {
  let portion: NewField[] = [];
  let [position, length] = [0, 0];
  const flush = async (): Promise<void> => {
    rows.insertFields(position, portion);
    await yieldToEventLoop();
    [position, portion, length] = [position + portion.length, [], 0];
  };
  const fields = eachField(text);
  let next = fields.next();
  for (; next.done !== true; next = fields.next()) {
    const { name, before, value } = next.value;
    const stored = await writeValue(rows, position + portion.length, value);
    portion.push({ name, before, ...stored });
    length += before.length + stored.value.length;
    if (portion.length >= portionRows || length >= portionLength) {
      await flush();
    }
  }
  await flush();
  await rows.saveText(next.value);
}

/** Columns of a field's row that represent its value. */
type StoredValue = Omit<FieldColumns, "before">;

/** Stores a value of a document in parts, in chunks if it is long. Returns the columns for the field's row. */
export async function writeValue(rows: DocumentRows, field: number, value: string): Promise<StoredValue> {
  const type = typeOfJson(value);
  const sizeBytes = Buffer.byteLength(value);
  const inRow = { type, value, sizeBytes, items: undefined };
  if (value.length <= chunkLength) {
    return inRow;
  }
  if (type !== "array") {
    rows.insertChunks(field, [{ position: chunkGap, items: 0, text: value }]);
    return { type, value: "", sizeBytes, items: 0 };
  }
  let portion: NewChunk[] = [];
  let [position, length, items] = [0, 0, 0];
  const flush = async (): Promise<void> => {
    rows.insertChunks(field, portion);
    await yieldToEventLoop();
    [portion, length] = [[], 0];
  };
  const chunks = eachChunk(value);
  let next = chunks.next();
  for (; next.done !== true; next = chunks.next()) {
    position += chunkGap;
    portion.push({ position, ...next.value });
    length += next.value.text.length;
    items += next.value.items;
    if (length >= portionLength) {
      await flush();
    }
  }
  await flush();
  return items === 0 ? inRow : { type, value: next.value, sizeBytes, items };
}
