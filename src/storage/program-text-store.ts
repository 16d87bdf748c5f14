/** How the texts of documents, fields and chunks are put together by the database, as SQL. */
import type { Dialect } from "../db/dialects.js";

/** The chunks of a field, as one text. */
export function chunksOf({ textOf }: Dialect, address: string, field: string): string {
  return textOf({
    text: "c.text",
    from: `program_chunks c WHERE c.address = ${address} AND c.field = ${field}`,
    orderBy: "c.position",
  });
}

/** The value of a field `f`. */
export function wholeValue(dialect: Dialect): string {
  const chunks = chunksOf(dialect, "f.address", "f.position");
  return `CASE WHEN f.items IS NULL THEN f.value ELSE ${chunks} || f.value END`;
}

/** The document of a program `p`, of which `d` is the text. */
export function wholeDocument(dialect: Dialect): string {
  const fields = dialect.textOf({
    text: `f.text_before || ${wholeValue(dialect)}`,
    from: "program_fields f WHERE f.address = p.address",
    orderBy: "f.position",
  });
  return `CASE WHEN p.in_parts THEN ${fields} || d.data ELSE d.data END`;
}
