/**
 * Changes of a document that is an object. The resulting text is the same for both forms of storage: it is the text
 * that the functions of document.ts produce. A document in parts is changed in place.
 */
import { RpcError } from "../../rpc/errors.js";
import { changeChunks, type ItemChange } from "./array-changes.js";
import { appendItem, deleteItem, deleteMember, itemsOf, setItem, setMember } from "../documents/document.js";
import { maxTextBytes, minPartsBytes, nameStart } from "../documents/document-parts.js";
import { plainField, rewrite, writeValue } from "./document-writing.js";
import { maxDocumentBytes } from "../documents/document-bounds.js";
import { skipSpace, splitSpace } from "../documents/json-text.js";
import type { DocumentState } from "../programs/programs.js";
import type { DocumentRows, FieldRow } from "./document-rows-store.js";

/**
 * Sets the value of a field. A new field is added at the end.
 *
 * @throws RpcError INVALID_REQUEST if the document would be too large; nothing is changed then.
 */
export async function setField(
  rows: DocumentRows,
  state: DocumentState,
  name: string,
  value: string,
): Promise<DocumentState> {
  return await writeField(rows, state, name, await rows.field(name), value);
}

/**
 * Deletes a field.
 *
 * @throws RpcError FIELD_NOT_FOUND
 */
export async function deleteField(rows: DocumentRows, state: DocumentState, name: string): Promise<DocumentState> {
  const field = await rows.field(name);
  if (field === undefined) {
    throw missingField();
  }
  if (state.inParts) {
    return await deleteFromParts(rows, state, field);
  }
  const text = deleteMember(await rows.text(), name)!;
  return await saveText(rows, state, text, () => rows.deleteField(field));
}

/**
 * Changes an array.
 *
 * @throws RpcError FIELD_NOT_FOUND, INVALID_FIELD_TYPE, INDEX_OUT_OF_BOUNDS, and INVALID_REQUEST if the document would
 * be too large; nothing is changed then.
 */
export async function changeItem(
  rows: DocumentRows,
  state: DocumentState,
  name: string,
  change: ItemChange,
): Promise<DocumentState> {
  const field = await rows.field(name);
  if (field === undefined) {
    throw missingField();
  }
  if (field.type !== "array") {
    throw new RpcError("INVALID_FIELD_TYPE", "The field is not an array.");
  }
  if (field.items !== undefined) {
    checkIndex(change, field.items);
    const addBytes = (bytes: number): void => void withBytes(state, bytes);
    const changed = await changeChunks(rows, { ...field, items: field.items }, change, addBytes);
    rows.saveField({ ...field, ...changed });
    return await joinIfSmall(rows, withBytes(state, changed.sizeBytes - field.sizeBytes));
  }
  return await writeField(rows, state, name, field, changeArray(field.value, change));
}

function changeArray(array: string, change: ItemChange): string {
  const items = itemsOf(array);
  checkIndex(change, items.length);
  switch (change.kind) {
    case "append":
      return appendItem(array, items, change.value);
    case "set":
      return setItem(array, items, change.index, change.value);
    case "delete":
      return deleteItem(array, items, change.index);
  }
}

function checkIndex(change: ItemChange, items: number): void {
  if (change.kind !== "append" && change.index >= items) {
    throw new RpcError("INDEX_OUT_OF_BOUNDS", "The array has no item at this index.");
  }
}

function missingField(): RpcError {
  return new RpcError("FIELD_NOT_FOUND", "The program has no such field.");
}

/**
 * Returns the state of a document that grows by a number of bytes.
 *
 * @throws RpcError INVALID_REQUEST if the document would be too large.
 */
function withBytes({ sizeBytes, inParts }: DocumentState, bytes: number): DocumentState {
  if (sizeBytes + bytes > maxDocumentBytes) {
    throw new RpcError("INVALID_REQUEST", `The document would be larger than ${maxDocumentBytes} bytes.`);
  }
  return { sizeBytes: sizeBytes + bytes, inParts };
}

/** Stores the new value of a field; `field` is its row if it exists. An empty program becomes an object. */
async function writeField(
  rows: DocumentRows,
  state: DocumentState,
  name: string,
  field: FieldRow | undefined,
  value: string,
): Promise<DocumentState> {
  if (state.inParts) {
    return await (field === undefined
      ? addToParts(rows, state, name, value)
      : replaceInParts(rows, state, field, value));
  }
  const text = setMember(state.sizeBytes === 0 ? "{}" : await rows.text(), name, value);
  return await saveText(rows, state, text, async () => {
    const columns = plainField(splitSpace(value).core);
    if (field === undefined) {
      rows.insertFields(((await rows.lastPosition()) ?? -1) + 1, [{ name, ...columns }]);
    } else {
      rows.saveField({ ...field, ...columns });
    }
  });
}

/** Stores the changed text of a document, in parts if it is too large for one text. */
async function saveText(
  rows: DocumentRows,
  before: DocumentState,
  text: string,
  saveField: () => Promise<void> | void,
): Promise<DocumentState> {
  const after = withBytes(before, Buffer.byteLength(text) - before.sizeBytes);
  if (after.sizeBytes > maxTextBytes) {
    return await rewrite(rows, before, text);
  }
  await rows.saveText(text);
  await saveField();
  return after;
}

/** Converts a document in parts to one text if it has shrunk to {@link minPartsBytes}. */
async function joinIfSmall(rows: DocumentRows, state: DocumentState): Promise<DocumentState> {
  return state.sizeBytes > minPartsBytes ? state : await rewrite(rows, state, await rows.joinedText(state.sizeBytes));
}

/** Adds a field at the end of a document in parts. White space after the value becomes text of the tail. */
async function addToParts(
  rows: DocumentRows,
  state: DocumentState,
  name: string,
  value: string,
): Promise<DocumentState> {
  const { lead, core, trail } = splitSpace(value);
  const last = await rows.lastPosition();
  const named = `${JSON.stringify(name)}:${lead}`;
  const text = last === undefined || trail !== "" ? await rows.text() : "";
  // An object without fields has only white space between its braces, which is dropped.
  const opened = last === undefined ? skipSpace(text, 0) + 1 : 0;
  const before = last === undefined ? text.slice(0, opened) + named : `,${named}`;
  const rest = trail + (last === undefined ? text.slice(skipSpace(text, opened)) : text);
  const after = withBytes(state, Buffer.byteLength(before) + Buffer.byteLength(core) + rest.length - text.length);
  if (text !== "") {
    await rows.saveText(rest);
  }
  const position = (last ?? -1) + 1;
  rows.insertFields(position, [{ name, before, ...(await writeValue(rows, position, core)) }]);
  return await joinIfSmall(rows, after);
}

/** Replaces a value in a document in parts. White space around the value moves to the texts before and after it. */
async function replaceInParts(
  rows: DocumentRows,
  state: DocumentState,
  field: FieldRow,
  value: string,
): Promise<DocumentState> {
  const { lead, core, trail } = splitSpace(value);
  const { position } = field;
  const after = withBytes(state, Buffer.byteLength(value) - field.sizeBytes);
  await deleteChunks(rows, field);
  rows.saveField({ ...field, before: field.before + lead, ...(await writeValue(rows, position, core)) });
  if (trail !== "") {
    const next = await rows.fieldAfter(position);
    if (next === undefined) {
      await rows.saveText(trail + (await rows.text()));
    } else {
      rows.saveField({ ...next, before: trail + next.before });
    }
  }
  return await joinIfSmall(rows, after);
}

/** Deletes a field from a document in parts. The text before the field's name replaces that of the next field. */
async function deleteFromParts(rows: DocumentRows, state: DocumentState, field: FieldRow): Promise<DocumentState> {
  const { position, before } = field;
  const lead = before.slice(0, nameStart(before));
  let growth = -field.sizeBytes - Buffer.byteLength(before);
  const next = await rows.fieldAfter(position);
  if (next !== undefined) {
    const from = nameStart(next.before);
    growth += lead.length - from;
    rows.saveField({ ...next, before: lead + next.before.slice(from) });
  } else if ((await rows.lastPosition(position)) === undefined) {
    growth += lead.length;
    await rows.saveText(lead + (await rows.text()));
  }
  await deleteChunks(rows, field);
  rows.deleteField(field);
  return await joinIfSmall(rows, withBytes(state, growth));
}

async function deleteChunks(rows: DocumentRows, field: FieldRow): Promise<void> {
  if (field.items !== undefined) {
    await rows.deleteChunks(field.position, field.sizeBytes);
  }
}
