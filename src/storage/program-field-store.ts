/** The fields of one document in the database: a row for each. */
import { hashFieldRow } from "../db/row-hashes.js";
import type { Rows } from "./document-rows-store.js";
import type { DocumentRows, FieldColumns, FieldRow } from "./programs.js";
import { checkField, type FieldRecord } from "./stored-program.js";

type FieldReads = Pick<DocumentRows, "field" | "fieldAfter" | "lastPosition">;
type FieldChanges = Pick<DocumentRows, "insertFields" | "saveField" | "deleteField">;

const columns = [
  ...["address", "position", "name_json", "type", "text_before", "value", "size_bytes", "items"],
  "row_hash",
];

/** Reads and changes them. */
export function createFieldRows(rows: Rows): FieldReads & FieldChanges {
  return { ...createFieldReads(rows), ...createFieldChanges(rows) };
}

function createFieldReads({ address, work, read }: Rows): FieldReads {
  const toField = (row: FieldRecord | undefined): FieldRow | undefined => {
    if (row === undefined) {
      return undefined;
    }
    const { position, text_before: before, value, size_bytes: sizeBytes, items } = checkField(address, row);
    work.touch(before);
    work.touch(value);
    const name = JSON.parse(row.name_json) as string;
    return { position, name, type: row.type as FieldRow["type"], before, value, sizeBytes, items: items ?? undefined };
  };

  return {
    async field(name) {
      const key = { address, name_json: JSON.stringify(name) };
      return toField(await read<FieldRecord>((sql) => sql("program_fields").where(key).select(columns)));
    },

    async fieldAfter(position) {
      return toField(
        await read<FieldRecord>((sql) =>
          sql("program_fields")
            .where({ address })
            .where("position", ">", position)
            .orderBy("position")
            .limit(1)
            .select(columns),
        ),
      );
    },

    async lastPosition(below) {
      const row = await read<{ position: number }>((sql) => {
        const fields = sql("program_fields").where({ address });
        return (below === undefined ? fields : fields.where("position", "<", below))
          .orderBy("position", "desc")
          .limit(1)
          .select("position");
      });
      return row?.position;
    },
  };
}

function createFieldChanges({ db, address, work, change, insert }: Rows): FieldChanges {
  const { slot } = db.dialect.list;
  /** The row of a field. */
  const toRow = (position: number, name: string, field: FieldColumns) => {
    const { type, before, value, sizeBytes: size_bytes, items = null } = field;
    const name_json = JSON.stringify(name);
    const row = { address, position, name_json, type, text_before: before, value, size_bytes, items, row_hash: "" };
    row.row_hash = hashFieldRow(row);
    return row;
  };
  const touchTexts = ({ before, value }: FieldColumns): void => {
    work.touch(before);
    work.touch(value);
  };

  return {
    async insertFields(position, fields) {
      fields.forEach(touchTexts);
      await insert(
        "program_fields (address, position, name_json, type, text_before, value, size_bytes, items, row_hash)",
        `CAST(? AS varchar(45)), CAST(? AS integer) + ${slot}, k.value ->> 0, k.value ->> 1, k.value ->> 2, k.value ->> 3,
          CAST(k.value ->> 4 AS integer), CAST(k.value ->> 5 AS integer), k.value ->> 6`,
        [address, position],
        fields.map((field, i) => {
          const row = toRow(position + i, field.name, field);
          return [row.name_json, row.type, row.text_before, row.value, row.size_bytes, row.items, row.row_hash];
        }),
      );
    },

    async saveField({ position, name, ...field }) {
      touchTexts(field);
      if (field.items !== undefined) {
        // Its chunks are read and hashed for the state tree, once in a block: an eighth of what writing them is.
        work.touch(Math.ceil(field.sizeBytes / 8));
      }
      const { type, text_before, value, size_bytes, items, row_hash } = toRow(position, name, field);
      const row = { type, text_before, value, size_bytes, items, row_hash };
      await change((sql) => sql("program_fields").where({ address, position }).update(row));
    },

    deleteField: ({ position }) => change((sql) => sql("program_fields").where({ address, position }).delete()),
  };
}
