/** Queries on the rows of one document, whose work is counted. */
import type { Queries } from "../db/database.js";
import type { Work } from "./work.js";

/** Runs queries on rows of a document, and counts what they touch. */
export function createRows(db: Queries, address: string, work: Work) {
  return {
    db,
    address,
    work,
    /** The first row of a query that reads. */
    read: async <Row>(...query: Parameters<typeof db.first<Row>>): Promise<Row | undefined> => {
      const row = await db.first<Row>(...query);
      work.touchRows(row === undefined ? 0 : 1);
      return row;
    },
    /** Runs an update or a delete. */
    change: async (build: Parameters<Queries["run"]>[0]): Promise<void> => {
      work.touchRows((await db.run(build)) as number);
    },
    /** Inserts rows that are given as lists of what these SQL expressions take. */
    insert: async (
      into: string,
      values: string,
      first: readonly (string | number)[],
      lists: readonly unknown[],
    ): Promise<void> => {
      const text = JSON.stringify(lists);
      work.touchRows(lists.length);
      await db.run((sql) =>
        sql.raw(`INSERT INTO ${into} SELECT ${values} FROM ${db.dialect.list.table}`, [...first, text]),
      );
    },
  };
}

/** Access to the rows of a document. */
export type Rows = ReturnType<typeof createRows>;
