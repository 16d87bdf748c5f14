/**
 * Changes of a document that is an object. The resulting text is the same for both forms of storage: it is the text
 * that the functions of document.ts produce. A document in parts is changed in place.
 */
import { RpcError } from "../../rpc/errors.js";
import { appendItem, deleteItem, deleteMember, itemsOf, setItem, setMember } from "../documents/document.js";
import { maxDocumentBytes } from "../documents/document-bounds.js";
import { maxTextBytes, minPartsBytes, nameStart } from "../documents/document-parts.js";
import { skipSpace, splitSpace } from "../documents/json-text.js";
import type { DocumentState } from "../programs/programs.js";
import { ChunkedArray, type ItemChange } from "./array-changes.js";
import type { DocumentRows, FieldRow } from "./document-rows-store.js";
import { plainField, rewrite, writeValue } from "./document-writing.js";

/**
 * Object document before a change. Each change returns the state of the document after it, and throws RpcError
 * INVALID_REQUEST if the document would be too large; nothing is changed then.
 */
export class ObjectDocument {
  constructor(
    private readonly rows: DocumentRows,
    private readonly state: DocumentState,
  ) {}

  /** Sets the value of a field. A new field is added at the end. */
  async setField(name: string, value: string): Promise<DocumentState> {
    return await this.#write(name, await this.rows.field(name), value);
  }

  /** @throws RpcError FIELD_NOT_FOUND */
  async deleteField(name: string): Promise<DocumentState> {
    const field = await this.#find(name);
    if (this.state.inParts) {
      return await this.#deleteFromParts(field);
    }
    const text = deleteMember(await this.rows.text(), name)!;
    return await this.#saveText(text, () => this.rows.deleteField(field));
  }

  /** @throws RpcError FIELD_NOT_FOUND, INVALID_FIELD_TYPE, INDEX_OUT_OF_BOUNDS */
  async changeItem(name: string, change: ItemChange): Promise<DocumentState> {
    const field = await this.#find(name);
    if (field.type !== "array") {
      throw new RpcError("INVALID_FIELD_TYPE", "The field is not an array.");
    }
    if (field.items === undefined) {
      return await this.#write(name, field, changeArray(field.value, change));
    }
    checkIndex(change, field.items);
    const checkGrowth = (bytes: number): void => void this.#grownBy(bytes);
    const columns = await new ChunkedArray(this.rows, { ...field, items: field.items }, checkGrowth).change(change);
    this.rows.saveField({ ...field, ...columns });
    return await this.#joinIfSmall(this.#grownBy(columns.sizeBytes - field.sizeBytes));
  }

  async #find(name: string): Promise<FieldRow> {
    const field = await this.rows.field(name);
    if (field === undefined) {
      throw new RpcError("FIELD_NOT_FOUND", "The program has no such field.");
    }
    return field;
  }

  /** Returns the state of the document after it has grown by a number of bytes. */
  #grownBy(bytes: number): DocumentState {
    const sizeBytes = this.state.sizeBytes + bytes;
    if (sizeBytes > maxDocumentBytes) {
      throw new RpcError("INVALID_REQUEST", `The document would be larger than ${maxDocumentBytes} bytes.`);
    }
    return { sizeBytes, inParts: this.state.inParts };
  }

  /** Stores the new value of a field; `field` is its row if it exists. An empty program becomes an object. */
  async #write(name: string, field: FieldRow | undefined, value: string): Promise<DocumentState> {
    const { rows, state } = this;
    if (state.inParts) {
      return await (field === undefined ? this.#addToParts(name, value) : this.#replaceInParts(field, value));
    }
    const text = setMember(state.sizeBytes === 0 ? "{}" : await rows.text(), name, value);
    return await this.#saveText(text, async () => {
      const columns = plainField(splitSpace(value).core);
      if (field === undefined) {
        rows.insertFields(((await rows.lastPosition()) ?? -1) + 1, [{ name, ...columns }]);
      } else {
        rows.saveField({ ...field, ...columns });
      }
    });
  }

  /** Stores the changed text of a document, in parts if it is too large for one text. */
  async #saveText(text: string, saveField: () => Promise<void> | void): Promise<DocumentState> {
    const after = this.#grownBy(Buffer.byteLength(text) - this.state.sizeBytes);
    if (after.sizeBytes > maxTextBytes) {
      return await rewrite(this.rows, this.state, text);
    }
    await this.rows.saveText(text);
    await saveField();
    return after;
  }

  /** Converts a document in parts to one text if it has shrunk to {@link minPartsBytes}. */
  async #joinIfSmall(after: DocumentState): Promise<DocumentState> {
    return after.sizeBytes > minPartsBytes
      ? after
      : await rewrite(this.rows, after, await this.rows.joinedText(after.sizeBytes));
  }

  /** Adds a field at the end of a document in parts. White space after the value becomes text of the tail. */
  async #addToParts(name: string, value: string): Promise<DocumentState> {
    const { rows } = this;
    const { lead, core, trail } = splitSpace(value);
    const last = await rows.lastPosition();
    const named = `${JSON.stringify(name)}:${lead}`;
    const text = last === undefined || trail !== "" ? await rows.text() : "";
    // An object without fields has only white space between its braces, which is dropped.
    const opened = last === undefined ? skipSpace(text, 0) + 1 : 0;
    const before = last === undefined ? text.slice(0, opened) + named : `,${named}`;
    const rest = trail + (last === undefined ? text.slice(skipSpace(text, opened)) : text);
    const after = this.#grownBy(Buffer.byteLength(before) + Buffer.byteLength(core) + rest.length - text.length);
    if (text !== "") {
      await rows.saveText(rest);
    }
    const position = (last ?? -1) + 1;
    rows.insertFields(position, [{ name, before, ...(await writeValue(rows, position, core)) }]);
    return await this.#joinIfSmall(after);
  }

  /** Replaces a value in a document in parts. White space around the value moves to the texts before and after it. */
  async #replaceInParts(field: FieldRow, value: string): Promise<DocumentState> {
    const { rows } = this;
    const { lead, core, trail } = splitSpace(value);
    const { position } = field;
    const after = this.#grownBy(Buffer.byteLength(value) - field.sizeBytes);
    await this.#deleteChunks(field);
    rows.saveField({ ...field, before: field.before + lead, ...(await writeValue(rows, position, core)) });
    if (trail !== "") {
      const next = await rows.fieldAfter(position);
      if (next === undefined) {
        await rows.saveText(trail + (await rows.text()));
      } else {
        rows.saveField({ ...next, before: trail + next.before });
      }
    }
    return await this.#joinIfSmall(after);
  }

  /** Deletes a field from a document in parts. The text before the field's name replaces that of the next field. */
  async #deleteFromParts(field: FieldRow): Promise<DocumentState> {
    const { rows } = this;
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
    await this.#deleteChunks(field);
    rows.deleteField(field);
    return await this.#joinIfSmall(this.#grownBy(growth));
  }

  async #deleteChunks({ items, position, sizeBytes }: FieldRow): Promise<void> {
    if (items !== undefined) {
      await this.rows.deleteChunks(position, sizeBytes);
    }
  }
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
