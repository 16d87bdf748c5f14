/** What a step of the schema is. */
import type { Queries, Query, QueryBuilder } from "../queries/database.js";
import type { SchemaWords } from "../queries/dialects.js";

/** One step. */
export interface Migration {
  readonly name: string;
  /** What it does, in this order. */
  readonly queries: (sql: QueryBuilder, words: SchemaWords) => readonly Query[];
  /** What is done to the rows afterwards that no query alone can do, a portion of them at a time. */
  readonly fill?: (db: Queries) => Promise<void>;
}
