/** Write buffer: compares buffered rows with a model and with the database, after changes, rollbacks and stores. */
import test, { type ExecutionContext } from "ava";
import fc from "fast-check";
import type { DatabaseTransaction } from "../../src/db/queries/database.js";
import { createWriteBuffer, type BufferedTable } from "../../src/db/rows/write-buffer.js";
import { prepareEngines } from "../helpers/databases/databases.js";
import { countTurns } from "../helpers/process/heap.js";

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

function buffer(db: DatabaseTransaction, check: (row: Row) => void = () => undefined) {
  const rows = createWriteBuffer(db);
  const table = rows.table<Row>({
    ...{ name: "things", group: "owner", within: ["at"], check },
    columns: { owner: "text", at: "integer", name: "text", text: "text", is_on: "boolean", count: "integer" },
    changing: ["text", "is_on", "count"],
  });
  return { rows, table };
}

/** Reads the rows of an owner from the database, in key order. */
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
  | { readonly kind: "clear" | "prefetch"; readonly owner: string }
  | { readonly kind: "store" };

const owner = fc.constantFrom(...owners);
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constantFrom("insert", "insert", "put", "remove" as const),
    ...{ owner, pick: fc.nat(9), text: fc.constantFrom("", "é", 'a"b\\', "\u{1F600}", "'; --") },
  }),
  fc.record({ kind: fc.constantFrom("clear", "prefetch" as const), owner }),
  fc.constant({ kind: "store" } as const),
);
/** Savepoints with their steps; some of them roll back. */
const savepoints = fc.array(fc.record({ steps: fc.array(step, { maxLength: 6 }), fails: fc.boolean() }), {
  maxLength: 8,
});

/** Expected rows, by owner and position. */
type Model = Map<string, Map<number, Row>>;

/** Applies a step to the table and to the model. Returns the error in the number of cleared rows. */
async function apply(
  table: BufferedTable<Row>,
  model: Model,
  change: Exclude<Step, { kind: "store" }>,
): Promise<number> {
  const rows = model.get(change.owner)!;
  switch (change.kind) {
    case "prefetch":
      await table.prefetch(owners);
      return 0;
    case "clear": {
      const { size } = rows;
      rows.clear();
      return (await table.clear(change.owner)) - size;
    }
    case "insert": {
      // Reuses the names of removed rows, and the positions after the last row.
      const at = Math.max(-1, ...rows.keys()) + 1;
      const name = `n${change.pick}`;
      if (![...rows.values()].some((row) => row.name === name)) {
        const row = rowOf(change.owner, at, name, change.text);
        rows.set(at, row);
        table.insert(row);
      }
      return 0;
    }
    case "put":
    case "remove": {
      const at = [...rows.keys()][change.pick];
      if (at !== undefined && change.kind === "put") {
        const row = { ...rows.get(at)!, text: change.text };
        rows.set(at, row);
        table.put(row);
      } else if (at !== undefined) {
        rows.delete(at);
        table.remove(change.owner, at);
      }
      return 0;
    }
  }
}

async function compare(t: ExecutionContext, table: BufferedTable<Row>, model: Model): Promise<void> {
  for (const [name, rows] of model) {
    const positions = [...rows.keys()].sort((a, b) => a - b);
    t.deepEqual(
      (await table.list(name)).map(plain),
      positions.map((at) => plain(rows.get(at)!)),
    );
    t.is(await table.seek(name, [], "first"), positions[0]);
    t.is(await table.seek(name, [], "last"), positions.at(-1));
    for (const at of [0, 3]) {
      t.is(
        await table.seek(name, [], "first", at),
        positions.find((each) => each > at),
      );
      t.is(
        await table.seek(name, [], "last", at),
        positions.findLast((each) => each < at),
      );
      const found = await table.get(name, at);
      t.deepEqual(found && plain(found), rows.get(at) && plain(rows.get(at)!));
    }
    const byName = await table.find(name, "name", "n1");
    t.is(byName?.at, [...rows.values()].find((row) => row.name === "n1")?.at);
  }
}

for (const engine of engines.names) {
  test(`${engine}: buffered rows match a model, and match the database once stored`, async (t) => {
    const { transaction } = await engines.open(t, engine);
    await transaction(createTable);
    await fc.assert(
      fc.asyncProperty(savepoints, fc.integer({ min: 0, max: 5 }), async (planned, before) => {
        await transaction(async (db) => {
          await db.run((sql) => sql("things").delete());
          const first = buffer(db);
          let model: Model = new Map(owners.map((name) => [name, new Map<number, Row>()]));
          for (let at = 0; at < before; at++) {
            const row = rowOf("a", at, `n${at}`);
            model.get("a")!.set(at, row);
            first.table.insert(row);
          }
          await first.rows.store();
          const { rows, table } = buffer(db);
          for (const { steps, fails } of planned) {
            const previous = new Map([...model].map(([name, byPosition]) => [name, new Map(byPosition)]));
            const outcome = rows.savepoint(async () => {
              for (const change of steps) {
                if (change.kind !== "store") {
                  t.is(await apply(table, model, change), 0, "the number of cleared rows is wrong");
                }
              }
              if (fails) {
                throw new RangeError("rolls back");
              }
            });
            if (fails) {
              await t.throwsAsync(outcome, { instanceOf: RangeError });
              model = previous;
            } else {
              await outcome;
            }
            await compare(t, table, model);
            if (steps.some(({ kind }) => kind === "store")) {
              await rows.store();
            }
          }
          await rows.store();
          for (const [name, byPosition] of model) {
            const positions = [...byPosition.keys()].sort((a, b) => a - b);
            t.deepEqual(
              await stored(db, name),
              positions.map((at) => plain(byPosition.get(at)!)),
            );
          }
        });
      }),
      { numRuns: 60 },
    );
  });

  test(`${engine}: a group of 3,000 rows is stored when its savepoint ends, and is read from the database again`, async (t) => {
    const { transaction } = await engines.open(t, engine);
    await transaction(async (db) => {
      await createTable(db);
      const { rows, table } = buffer(db);
      const many = Array.from({ length: 3_000 }, (_, at) => rowOf("a", at, `n${at}`));
      await rows.savepoint(() => Promise.resolve(many.forEach((row) => table.insert(row))));
      t.is((await stored(db, "a")).length, many.length, "the rows are still in the buffer only");
      await rows.savepoint(async () => {
        t.is(await table.seek("a", [], "last"), 2_999);
        for (let at = 2_999; at > 2_900; at--) {
          table.remove("a", at);
          t.is(await table.seek("a", [], "last"), at - 1);
        }
        t.is(await table.clear("a"), 2_901);
      });
      await rows.store();
      t.deepEqual(await stored(db, "a"), []);
    });
  });

  test(`${engine}: a prefetched row that fails its check throws when it is read, and not before`, async (t) => {
    const { transaction } = await engines.open(t, engine);
    await transaction(async (db) => {
      await createTable(db);
      const written = buffer(db);
      written.table.insert(rowOf("a", 0, "damaged"));
      await written.rows.store();
      const { table } = buffer(db, ({ name }) => {
        throw new RangeError(`${name} is corrupt`);
      });
      await table.prefetch(["a"]);
      t.is(table.peek("a", 0)!.name, "damaged");
      await t.throwsAsync(table.get("a", 0), { instanceOf: RangeError });
      await t.throwsAsync(table.find("a", "name", "damaged"), { instanceOf: RangeError });
      await t.throwsAsync(table.list("a"), { instanceOf: RangeError });
      t.throws(() => table.insert(rowOf("a", 0, "again")), { message: /created twice/ });
    });
  });

  test(`${engine}: 20,000 rows are stored in statements of at most 500 rows, yielding to the event loop in between`, async (t) => {
    const database = await engines.open(t, engine);
    const tick = countTurns(t);
    await database.transaction(async (db) => {
      await createTable(db);
      const startTicks: number[] = [];
      const sizes: number[] = [];
      const { rows, table } = buffer({
        ...db,
        prepare: (text, queue) => {
          const query = db.prepare(text, queue);
          return (...values) => {
            startTicks.push(tick());
            sizes.push((JSON.parse(values[0] as string) as unknown[]).length);
            return query(...values) as Promise<never[]>;
          };
        },
      });
      const count = 20_000;
      table.markEmpty("a");
      for (let at = 0; at < count; at++) {
        table.insert(rowOf("a", at, `n${at}`));
      }
      const before = tick();
      await rows.store();
      // The changes are collected first, with a yield after each 5,000 rows.
      t.true(startTicks[0]! - before >= 3, String(startTicks[0]! - before));
      t.true(Math.max(...sizes) <= 500);
      // The response to a statement may arrive in the same tick as the response before it.
      t.is(startTicks.length, count / 500);
      t.true(new Set(startTicks).size > startTicks.length / 2);
      t.is((await stored(db, "a")).length, count);
    });
  });
}
