/** Changes of storage programs in the database. The text of a document is the truth, and its fields follow. */
import { inChunks } from "../db/chunks.js";
import type { Queries } from "../db/database.js";
import { type AccessRule, namedReaders } from "./access.js";
import { membersOf, typeOfJson } from "./document.js";
import { type ChangeableProgram, foldName, type ProgramChanges, type ProgramContent } from "./programs.js";

/** What a program's own row says of who may read. */
interface AccessColumns {
  readonly owner: string;
  readonly mode: AccessRule["mode"];
  /** JSON text of the rest. */
  readonly access: string;
}

/** Builds the changes, inside the transaction of a block. */
export function createProgramChanges(db: Queries): ProgramChanges {
  return {
    ...createContentChanges(db),

    async find(address) {
      const row = await db.first<AccessColumns & Pick<ChangeableProgram, "encoding" | "type">>((sql) =>
        sql("programs").where({ address, deleted: false }).select("owner", "mode", "access", "encoding", "type"),
      );
      if (row === undefined) {
        return undefined;
      }
      const { owner, mode, access, encoding, type } = row;
      const lists = JSON.parse(access) as Omit<AccessRule, "owner" | "mode">;
      return { address, encoding, type, access: { owner, mode, ...lists } };
    },

    async insert({ address, name, access, content, metadata }, timeMs) {
      await db.run((sql) =>
        sql("programs").insert({
          address,
          owner: access.owner,
          name,
          name_folded: foldName(name),
          ...contentColumns(content),
          ...accessColumns(access),
          metadata,
          created_ms: timeMs,
          updated_ms: timeMs,
        }),
      );
      await insertReaders(db, address, access);
      await insertContent(db, address, content);
    },

    async setAccess(address, rule, timeMs) {
      await db.runAll((sql) => [
        sql("programs")
          .where({ address })
          .update({ ...accessColumns(rule), updated_ms: timeMs }),
        sql("program_readers").where({ address }).delete(),
      ]);
      await insertReaders(db, address, rule);
    },

    async delete(address, timeMs) {
      await db.runAll((sql) => [
        sql("programs").where({ address }).update({ deleted: true, updated_ms: timeMs, size_bytes: 0 }),
        ...["program_documents", "program_fields", "program_readers"].map((table) =>
          sql(table).where({ address }).delete(),
        ),
      ]);
    },
  };
}

/** What changes what a program holds. */
function createContentChanges(
  db: Queries,
): Pick<ProgramChanges, "document" | "replaceContent" | "setField" | "deleteField"> {
  async function saveDocument(address: string, data: string, sizeBytes: number, timeMs: number): Promise<void> {
    await db.runAll((sql) => [
      sql("program_documents").insert({ address, data }).onConflict("address").merge(),
      sql("programs").where({ address }).update({ type: "object", size_bytes: sizeBytes, updated_ms: timeMs }),
    ]);
  }

  return {
    async document(address) {
      const row = await db.first<{ data: string }>((sql) => sql("program_documents").where({ address }).select("data"));
      return row?.data;
    },

    async replaceContent(address, content, timeMs) {
      await db.runAll((sql) => [
        sql("program_fields").where({ address }).delete(),
        sql("program_documents").where({ address }).delete(),
        sql("programs")
          .where({ address })
          .update({ ...contentColumns(content), updated_ms: timeMs }),
      ]);
      await insertContent(db, address, content);
    },

    async setField(address, { text, sizeBytes, field, value }, timeMs) {
      await saveDocument(address, text, sizeBytes, timeMs);
      const key = { address, name_json: JSON.stringify(field) };
      const change = { type: typeOfJson(value), value };
      if ((await db.run((sql) => sql("program_fields").where(key).update(change))) === 0) {
        const last = await db.first<{ position: number | null }>((sql) =>
          sql("program_fields").where({ address }).max({ position: "position" }),
        );
        const position = (last?.position ?? -1) + 1;
        await db.run((sql) => sql("program_fields").insert({ ...key, ...change, position }));
      }
    },

    async deleteField(address, { text, sizeBytes, field }, timeMs) {
      await saveDocument(address, text, sizeBytes, timeMs);
      await db.run((sql) =>
        sql("program_fields")
          .where({ address, name_json: JSON.stringify(field) })
          .delete(),
      );
    },
  };
}

async function insertContent(db: Queries, address: string, content: ProgramContent): Promise<void> {
  if (content === undefined) {
    return;
  }
  const { text, type } = content;
  await db.run((sql) => sql("program_documents").insert({ address, data: text }));
  if (type === "object") {
    const rows = membersOf(text).map(({ name, valueStart, valueEnd }, position) => {
      const value = text.slice(valueStart, valueEnd);
      return { address, name_json: JSON.stringify(name), position, type: typeOfJson(value), value };
    });
    await db.runAll((sql) => inChunks(rows).map((some) => sql("program_fields").insert(some)));
  }
}

async function insertReaders(db: Queries, address: string, rule: AccessRule): Promise<void> {
  const rows = [...namedReaders(rule)].map(([identity, isAllowed]) => ({ address, identity, allowed: isAllowed }));
  await db.runAll((sql) => inChunks(rows).map((some) => sql("program_readers").insert(some)));
}

/** What a program's own row says of what it holds. */
function contentColumns(content: ProgramContent) {
  const { encoding = "json", type = "null", sizeBytes = 0 } = content ?? {};
  return { encoding, type, size_bytes: sizeBytes };
}

/** What a program's own row says of who may read. */
function accessColumns({ mode, allowed, blacklisted, groups }: AccessRule) {
  return { mode, access: JSON.stringify({ allowed, blacklisted, groups }) };
}
