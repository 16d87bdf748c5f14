/** Fields of one document, one row for each field. */
import { hashFieldRow } from "../../db/rows/row-hashes.js";
import type { DocumentContext } from "./program-tables-store.js";
import type { DocumentRows, FieldColumns, FieldRow } from "../programs/programs.js";
import type { FieldRecord } from "../programs/stored-program.js";

type FieldReads = Pick<DocumentRows, "field" | "fieldAfter" | "lastPosition">;
type FieldChanges = Pick<DocumentRows, "insertFields" | "saveField" | "deleteField">;

export function createFieldRows(context: DocumentContext): FieldReads & FieldChanges {
  return { ...createFieldReads(context), ...createFieldChanges(context) };
}

function createFieldReads({ address, cost, tables: { fields } }: DocumentContext): FieldReads {
  const toField = (row: FieldRecord): FieldRow => {
    const { position, text_before: before, value, size_bytes: sizeBytes, items } = row;
    cost.addRows(1);
    cost.addText(before);
    cost.addText(value);
    const name = JSON.parse(row.name_json) as string;
    return { position, name, type: row.type as FieldRow["type"], before, value, sizeBytes, items: items ?? undefined };
  };

  return {
    async field(name) {
      const row = await fields.find(address, "name_json", JSON.stringify(name));
      return row && toField(row);
    },

    async fieldAfter(position) {
      const next = await fields.seek(address, [], "first", position);
      return next === undefined ? undefined : toField((await fields.get(address, next))!);
    },

    async lastPosition(below) {
      const position = await fields.seek(address, [], "last", below);
      cost.addRows(position === undefined ? 0 : 1);
      return position;
    },
  };
}

function createFieldChanges({ address, cost, tables: { fields } }: DocumentContext): FieldChanges {
  const toRow = (position: number, name: string, field: FieldColumns): FieldRecord => {
    const { type, before, value, sizeBytes: size_bytes, items = null } = field;
    const name_json = JSON.stringify(name);
    const row = { address, position, name_json, type, items, size_bytes, text_before: before, value, row_hash: "" };
    row.row_hash = hashFieldRow(row);
    return row;
  };
  const touch = ({ before, value }: FieldColumns): void => {
    cost.addRows(1);
    cost.addText(before);
    cost.addText(value);
  };

  return {
    insertFields(position, added) {
      added.forEach((field, i) => {
        touch(field);
        fields.insert(toRow(position + i, field.name, field));
      });
      return Promise.resolve();
    },

    saveField({ position, name, ...field }) {
      touch(field);
      if (field.items !== undefined) {
        // The field's chunks are read and hashed for the state tree, once in a block. That costs an eighth of writing
        // them.
        cost.addText(Math.ceil(field.sizeBytes / 8));
      }
      fields.put(toRow(position, name, field));
      return Promise.resolve();
    },

    deleteField({ position }) {
      cost.addRows(1);
      fields.remove(address, position);
      return Promise.resolve();
    },
  };
}
