import test from "ava";
import type { Database } from "../../../src/db/queries/database.js";
import { createWriteBuffer } from "../../../src/db/rows/write-buffer.js";
import { CostCounter } from "../../../src/storage/changes/cost.js";
import {
  createProgramChanges,
  type NewProgram,
  type ProgramChanges,
} from "../../../src/storage/changes/program-change-store.js";
import { createProgramStore } from "../../../src/storage/stores/program-store.js";
import type { ProgramContent } from "../../../src/storage/programs/programs.js";
import type { StoreSuite } from "./suite.js";

const [alice, bob] = ["0xa", "0xb"];
const address = `stor-${"1".repeat(40)}`;
const page = { limit: 10, offset: 0 };

const json = (text: string, type: "object" | "array"): ProgramContent => ({
  encoding: "json",
  type,
  text,
  sizeBytes: Buffer.byteLength(text),
});

/** Document with field names that databases and JavaScript treat specially. */
const text = '{"b": 1.0,"a":[ 1 ],"__proto__":null,"x\\u0000\\"y":{"n":12345678901234567890}}';
const program: NewProgram = {
  address,
  name: "Größe 1",
  access: { owner: alice, mode: "public", allowed: [], blacklisted: [bob], groups: {} },
  content: json(text, "object"),
  metadata: '{"v": 1.0}',
  blinding: "0".repeat(64),
};

async function withProgram(database: Database) {
  const programs = createProgramStore(database.read);
  const change = (work: (changes: ProgramChanges) => Promise<void>): Promise<void> =>
    database.transaction(async (db) => {
      const rows = createWriteBuffer(db);
      await work(createProgramChanges(rows));
      await rows.store();
    });
  const replace = (content: ProgramContent): Promise<void> =>
    change(async (changes) => {
      const before = (await changes.find(address, new CostCounter()))!;
      await changes.replaceContent(before, content, 9, new CostCounter());
    });
  await change((changes) => changes.insert(program, 1_800_000_000_000, new CostCounter()));
  return { programs, change, replace };
}

export const testPrograms: StoreSuite = (engine, open) => {
  test.serial(`${engine}: programs: a program is read as it was created`, async (t) => {
    const { programs, change } = await withProgram(await open(t));
    const record = {
      address,
      name: program.name,
      encoding: "json",
      type: "object",
      access: program.access,
      metadata: program.metadata,
      sizeBytes: Buffer.byteLength(text),
      createdMs: 1_800_000_000_000,
      updatedMs: 1_800_000_000_000,
    } as const;
    t.deepEqual(await programs.findWithData(address), { record, data: text });
    t.deepEqual(await programs.findWithField(address, 'x\0"y'), {
      record,
      field: { type: "object", value: '{"n":12345678901234567890}' },
    });
    t.deepEqual(await programs.findWithField(address, "constructor"), { record, field: undefined });
    const entry = { address, name: program.name, owner: alice, encoding: "json" };
    t.like((await programs.listByOwner(alice, undefined, page))[0], entry);
    t.is(await programs.createdCount(), 1);
    await change(async (changes) => {
      t.deepEqual(await changes.find(address, new CostCounter()), {
        address,
        encoding: "json",
        type: "object",
        access: program.access,
        sizeBytes: Buffer.byteLength(text),
        inParts: false,
      });
      t.true(await changes.wasCreated(address));
      t.is(await changes.find(`stor-${"2".repeat(40)}`, new CostCounter()), undefined);
      t.false(await changes.wasCreated(`stor-${"2".repeat(40)}`));
    });
    t.is(await programs.findWithData(`stor-${"2".repeat(40)}`), undefined);
  });

  test.serial(`${engine}: programs: concurrent reads return each program to its own caller`, async (t) => {
    const { programs, change } = await withProgram(await open(t));
    const addresses = Array.from({ length: 50 }, (_, i) => `stor-${String(i).padStart(40, "0")}`);
    await change(async (changes) => {
      for (const [i, added] of addresses.entries()) {
        await changes.insert({ ...program, address: added, content: json(`[${i}]`, "array") }, i, new CostCounter());
      }
    });
    const requested = [...addresses, "stor-none", address, addresses[0]!];
    const found = await Promise.all(requested.map((one) => programs.findWithData(one)));
    t.deepEqual(
      found.map((one) => one?.data),
      [...addresses.map((_, i) => `[${i}]`), undefined, text, "[0]"],
    );
  });

  test.serial(
    `${engine}: programs: a document that changes from parts to one text during a read is read`,
    async (t) => {
      const database = await open(t);
      const { replace } = await withProgram(database);
      let whenRead: (() => Promise<void>) | undefined;
      const programs = createProgramStore({
        ...database.read,
        prepare: (sql, queue) => {
          const query = database.read.prepare<never>(sql, queue);
          return async (...values) => {
            const rows = await query(...values);
            const act = whenRead;
            whenRead = undefined;
            await act?.();
            return rows;
          };
        },
      });
      await replace(json(`{"x":"${"x".repeat(20_000)}"}`, "object"));
      whenRead = () => replace(json('{"n":1}', "object"));
      t.is((await programs.findWithData(address))!.data, '{"n":1}');
    },
  );

  test.serial(`${engine}: programs: replacing the contents also replaces the fields`, async (t) => {
    const { programs, replace } = await withProgram(await open(t));
    await replace({ encoding: "binary", type: "binary", text: '"AP8="', sizeBytes: 2 });
    t.like(await programs.findWithData(address), {
      data: '"AP8="',
      record: { encoding: "binary", type: "binary", sizeBytes: 2, updatedMs: 9, createdMs: 1_800_000_000_000 },
    });
    await replace(undefined);
    t.like(await programs.findWithData(address), { data: undefined, record: { encoding: "json", type: "null" } });
    const fields = Array.from({ length: 1_200 }, (_, i) => `f${i}`);
    await replace(json(`{${fields.map((name) => `"${name}":1`).join(",")}}`, "object"));
    t.is((await programs.findWithField(address, "f1199"))!.field!.value, "1");
    const large = json(`{"x":"${"x".repeat(20_000)}"}`, "object");
    await replace(large);
    t.is((await programs.findWithData(address))!.data, large!.text);
    await replace(json("[1]", "array"));
    t.is((await programs.findWithData(address))!.data, "[1]");
  });

  test.serial(`${engine}: programs: the count is correct if ids have gaps`, async (t) => {
    const database = await open(t);
    const { programs, change } = await withProgram(database);
    const insert = (digit: string): Promise<void> =>
      change((changes) => changes.insert({ ...program, address: `stor-${digit.repeat(40)}` }, 1, new CostCounter()));
    t.is(await programs.createdCount(), 1);
    // A PostgreSQL server skips ids after a crash.
    await insert("2");
    await database.write.run((sql) =>
      sql("programs")
        .where({ address: `stor-${"2".repeat(40)}` })
        .update({ id: 34 }),
    );
    t.is(await programs.createdCount(), 2);
    t.is(await createProgramStore(database.read).createdCount(), 2);
  });

  test.serial(`${engine}: programs: a hidden program takes the same queries as one that does not exist`, async (t) => {
    const database = await open(t);
    const { change } = await withProgram(database);
    const hide = { ...program.access, mode: "owner", blacklisted: [] } as const;
    await change((changes) =>
      changes.setAccess(address, { access: hide, blinding: "1".repeat(64) }, 11, new CostCounter()),
    );
    const sent: string[] = [];
    const programs = createProgramStore({
      ...database.read,
      prepare: (sql, queue) => {
        const query = database.read.prepare<never>(sql, queue);
        return (...values) => {
          sent.push(sql);
          return query(...values);
        };
      },
    });
    const queriesOf = async (of: string, identity: string | undefined): Promise<readonly string[]> => {
      sent.length = 0;
      t.is(await programs.findWithData(of, { identity }), undefined);
      t.is(await programs.findWithField(of, 'x\0"y', { identity }), undefined);
      t.is(await programs.findWithItem(of, "list", 0, { identity }), undefined);
      return [...sent];
    };
    for (const identity of [undefined, bob]) {
      const ofHidden = await queriesOf(address, identity);
      t.is(ofHidden.length, 6);
      t.deepEqual(ofHidden, await queriesOf(`stor-${"3".repeat(40)}`, identity));
    }
    t.like(await programs.findWithData(address, { identity: alice }), { record: { address } });
  });

  test.serial(`${engine}: programs: lists apply the access rule, and leave out deleted programs`, async (t) => {
    const { programs, change } = await withProgram(await open(t));
    const countListedFor = async (identity: string | undefined): Promise<number> =>
      (await programs.search("größe", false, identity, page)).length;
    t.deepEqual([await countListedFor(undefined), await countListedFor(alice), await countListedFor(bob)], [1, 1, 0]);
    const access = { ...program.access, mode: "restricted", allowed: [bob], blacklisted: [] } as const;
    await change((changes) => changes.setAccess(address, { access, blinding: "1".repeat(64) }, 11, new CostCounter()));
    t.deepEqual([await countListedFor(undefined), await countListedFor(alice), await countListedFor(bob)], [0, 1, 1]);
    t.like((await programs.findWithData(address))!.record, { access, updatedMs: 11 });
    await change(async (changes) => {
      const before = (await changes.find(address, new CostCounter()))!;
      await changes.delete(before, 12, new CostCounter());
    });
    t.deepEqual([await countListedFor(undefined), await countListedFor(alice), await countListedFor(bob)], [0, 0, 0]);
    t.is(await programs.findWithData(address), undefined);
    t.is(await programs.createdCount(), 1, "deleted programs are counted");
    await change(async (changes) => {
      t.is(await changes.find(address, new CostCounter()), undefined);
      t.true(await changes.wasCreated(address));
    });
  });
};
