/** Rows in memory and queries of the database give the same, whatever is done, taken back and stored in between. */
import test, { type ExecutionContext } from "ava";
import fc from "fast-check";
import type { DatabaseTransaction } from "../../src/db/queries/database.js";
import { createWriteBuffer, type BufferedTable } from "../../src/db/rows/write-buffer.js";
import { prepareEngines } from "../helpers/databases/databases.js";
import { countTurns } from "../helpers/process/turns.js";

const engines = await prepareEngines();

interface Row {
  readonly owner: string;
  readonly at: number;
  readonly name: string;
  readonly text: string;
  readonly is_on: boolean | number;
  readonly count: number | null;
}

const columns = ["owner", "at", "name", "text", "is_on", "count"] as const;

async function createTable(db: DatabaseTransaction): Promise<void> {
  await db.run((sql) =>
    sql.raw(`CREATE TABLE things (owner varchar(10) NOT NULL, at integer NOT NULL, name text NOT NULL, text text NOT NULL,
      is_on boolean NOT NULL, count integer, PRIMARY KEY (owner, at), UNIQUE (owner, name))`),
  );
}

function stage(db: DatabaseTransaction, check: (row: Row) => void = () => undefined) {
  const rows = createWriteBuffer(db);
  const table = rows.table<Row>({
    ...{ name: "things", group: "owner", within: ["at"], check },
    columns: { owner: "text", at: "integer", name: "text", text: "text", is_on: "boolean", count: "integer" },
    changing: ["text", "is_on", "count"],
  });
  return { rows, table };
}

/** The rows of an owner, in their order, as the database has them. */
async function stored(db: DatabaseTransaction, owner: string): Promise<Row[]> {
  return (await db.rows<Row>((sql) => sql("things").where({ owner }).orderBy("at"))).map(plain);
}

const plain = (row: Row): Row => ({
  ...(Object.fromEntries(columns.map((name) => [name, row[name]])) as unknown as Row),
  is_on: Boolean(row.is_on),
});

const rowOf = (owner: string, at: number, name: string, text = ""): Row => ({
  ...{ owner, at, name, text },
  is_on: at % 2 === 0,
  count: at % 3 === 0 ? null : at,
});

const owners = ["a", "b"];

type Step =
  | { readonly kind: "insert" | "put" | "remove"; readonly owner: string; readonly pick: number; readonly text: string }
  | { readonly kind: "clear" | "expect"; readonly owner: string }
  | { readonly kind: "store" };

const owner = fc.constantFrom(...owners);
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constantFrom("insert", "insert", "put", "remove" as const),
    ...{ owner, pick: fc.nat(9), text: fc.constantFrom("", "é", 'a"b\\', "\u{1F600}", "'; --") },
  }),
  fc.record({ kind: fc.constantFrom("clear", "expect" as const), owner }),
  fc.constant({ kind: "store" } as const),
);
/** Steps of attempts, each of which ends well or not. */
const attempts = fc.array(fc.record({ steps: fc.array(step, { maxLength: 6 }), fails: fc.boolean() }), {
  maxLength: 8,
});

/** What should be there: rows by owner and place. */
type Model = Map<string, Map<number, Row>>;

async function take(table: BufferedTable<Row>, model: Model, one: Exclude<Step, { kind: "store" }>): Promise<number> {
  const rows = model.get(one.owner)!;
  switch (one.kind) {
    case "expect":
      await table.prefetch(owners);
      return 0;
    case "clear": {
      const { size } = rows;
      rows.clear();
      return (await table.clear(one.owner)) - size;
    }
    case "insert": {
      // Names come again once they are free; places behind the last row do so, too.
      const at = Math.max(-1, ...rows.keys()) + 1;
      const name = `n${one.pick}`;
      if (![...rows.values()].some((row) => row.name === name)) {
        const row = rowOf(one.owner, at, name, one.text);
        rows.set(at, row);
        table.insert(row);
      }
      return 0;
    }
    case "put":
    case "remove": {
      const at = [...rows.keys()][one.pick];
      if (at !== undefined && one.kind === "put") {
        const row = { ...rows.get(at)!, text: one.text };
        rows.set(at, row);
        table.put(row);
      } else if (at !== undefined) {
        rows.delete(at);
        table.remove(one.owner, at);
      }
      return 0;
    }
  }
}

async function compare(t: ExecutionContext, table: BufferedTable<Row>, model: Model): Promise<void> {
  for (const [name, rows] of model) {
    const places = [...rows.keys()].sort((a, b) => a - b);
    t.deepEqual(
      (await table.list(name)).map(plain),
      places.map((at) => plain(rows.get(at)!)),
    );
    t.is(await table.edge(name, [], "first"), places[0]);
    t.is(await table.edge(name, [], "last"), places.at(-1));
    for (const at of [0, 3]) {
      t.is(
        await table.edge(name, [], "first", at),
        places.find((each) => each > at),
      );
      t.is(
        await table.edge(name, [], "last", at),
        places.findLast((each) => each < at),
      );
      const found = await table.get(name, at);
      t.deepEqual(found && plain(found), rows.get(at) && plain(rows.get(at)!));
    }
    const byName = await table.find(name, "name", "n1");
    t.is(byName?.at, [...rows.values()].find((row) => row.name === "n1")?.at);
  }
}

for (const engine of engines.names) {
  test(`${engine}: rows that are held and rows that are stored are the same`, async (t) => {
    const { transaction } = await engines.open(t, engine);
    await transaction(createTable);
    await fc.assert(
      fc.asyncProperty(attempts, fc.integer({ min: 0, max: 5 }), async (tried, before) => {
        await transaction(async (db) => {
          await db.run((sql) => sql("things").delete());
          const first = stage(db);
          let model: Model = new Map(owners.map((name) => [name, new Map<number, Row>()]));
          for (let at = 0; at < before; at++) {
            const row = rowOf("a", at, `n${at}`);
            model.get("a")!.set(at, row);
            first.table.insert(row);
          }
          await first.rows.store();
          const { rows, table } = stage(db);
          for (const { steps, fails } of tried) {
            const was = new Map([...model].map(([name, some]) => [name, new Map(some)]));
            const attempt = rows.savepoint(async () => {
              for (const one of steps) {
                if (one.kind !== "store") {
                  t.is(await take(table, model, one), 0, "how many there were");
                }
              }
              if (fails) {
                throw new RangeError("taken back");
              }
            });
            if (fails) {
              await t.throwsAsync(attempt, { instanceOf: RangeError });
              model = was;
            } else {
              await attempt;
            }
            await compare(t, table, model);
            if (steps.some(({ kind }) => kind === "store")) {
              await rows.store();
            }
          }
          await rows.store();
          for (const [name, some] of model) {
            const places = [...some.keys()].sort((a, b) => a - b);
            t.deepEqual(
              await stored(db, name),
              places.map((at) => plain(some.get(at)!)),
            );
          }
        });
      }),
      { numRuns: 60 },
    );
  });

  test(`${engine}: a group with many rows is stored after its transaction, and found again`, async (t) => {
    const { transaction } = await engines.open(t, engine);
    await transaction(async (db) => {
      await createTable(db);
      const { rows, table } = stage(db);
      const many = Array.from({ length: 3_000 }, (_, at) => rowOf("a", at, `n${at}`));
      await rows.savepoint(() => Promise.resolve(many.forEach((row) => table.insert(row))));
      t.is((await stored(db, "a")).length, many.length, "it is not held any more");
      await rows.savepoint(async () => {
        t.is(await table.edge("a", [], "last"), 2_999);
        for (let at = 2_999; at > 2_900; at--) {
          table.remove("a", at);
          t.is(await table.edge("a", [], "last"), at - 1);
        }
        t.is(await table.clear("a"), 2_901);
      });
      await rows.store();
      t.deepEqual(await stored(db, "a"), []);
    });
  });

  test(`${engine}: a row that is not what was stored is told of when somebody asks for it, and not before`, async (t) => {
    const { transaction } = await engines.open(t, engine);
    await transaction(async (db) => {
      await createTable(db);
      const written = stage(db);
      written.table.insert(rowOf("a", 0, "damaged"));
      await written.rows.store();
      const { table } = stage(db, ({ name }) => {
        throw new RangeError(`${name} is not what was stored`);
      });
      await table.prefetch(["a"]);
      t.is(table.peek("a", 0)!.name, "damaged");
      await t.throwsAsync(table.get("a", 0), { instanceOf: RangeError });
      await t.throwsAsync(table.find("a", "name", "damaged"), { instanceOf: RangeError });
      await t.throwsAsync(table.list("a"), { instanceOf: RangeError });
      t.throws(() => table.insert(rowOf("a", 0, "again")), { message: /created twice/ });
    });
  });
}

for (const engine of engines.names) {
  test(`${engine}: tens of thousands of rows are stored a few at a time, and others have their turns in between`, async (t) => {
    const database = await engines.open(t, engine);
    const turn = countTurns(t);
    await database.transaction(async (db) => {
      await createTable(db);
      const begunAt: number[] = [];
      const sizes: number[] = [];
      const { rows, table } = stage({
        ...db,
        prepare: (text, lane) => {
          const query = db.prepare(text, lane);
          return (...values) => {
            begunAt.push(turn());
            sizes.push((JSON.parse(values[0] as string) as unknown[]).length);
            return query(...values) as Promise<never[]>;
          };
        },
      });
      const count = 20_000;
      table.isNew("a");
      for (let at = 0; at < count; at++) {
        table.insert(rowOf("a", at, `n${at}`));
      }
      const before = turn();
      await rows.store();
      // What has changed is collected first, 5,000 rows at a time.
      t.true(begunAt[0]! - before >= 3, String(begunAt[0]! - before));
      t.true(Math.max(...sizes) <= 500);
      // The answer to a statement may arrive in the turn of the one before it.
      t.is(begunAt.length, count / 500);
      t.true(new Set(begunAt).size > begunAt.length / 2);
      t.is((await stored(db, "a")).length, count);
    });
  });
}
