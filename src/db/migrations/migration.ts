/** Steps of the schema. */
import type { Query, QueryBuilder } from "../queries/database.js";
import type { SchemaDialect } from "../queries/dialects.js";

/** A step of the schema. */
export interface Migration {
  readonly name: string;
  /** Queries of the step, in their order. */
  readonly queries: (sql: QueryBuilder, schema: SchemaDialect) => readonly Query[];
}
