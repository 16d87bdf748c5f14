import test from "ava";
import type { Database } from "../../../src/db/database.js";
import { createProgramChanges } from "../../../src/storage/program-change-store.js";
import { createProgramStore } from "../../../src/storage/program-store.js";
import type { NewProgram, ProgramChanges, ProgramContent } from "../../../src/storage/programs.js";
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

/** Its fields have names that databases and JavaScript treat in ways of their own. */
const text = '{"b": 1.0,"a":[ 1 ],"__proto__":null,"x\\u0000\\"y":{"n":12345678901234567890}}';
const program: NewProgram = {
  address,
  name: "Größe 1",
  access: { owner: alice, mode: "public", allowed: [], blacklisted: [bob], groups: {} },
  content: json(text, "object"),
  metadata: '{"v": 1.0}',
};

async function withProgram(database: Database) {
  const programs = createProgramStore(database.read);
  const change = (work: (changes: ProgramChanges) => Promise<void>): Promise<void> =>
    database.transaction((db) => work(createProgramChanges(db)));
  await change((changes) => changes.insert(program, 1_800_000_000_000));
  return { programs, change };
}

export const testPrograms: StoreSuite = (engine, open) => {
  test(`${engine}: programs: one comes back as it was made`, async (t) => {
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
    const names = ["b", "a", "__proto__", 'x\0"y'];
    t.deepEqual(await programs.findWithFieldNames(address), { record, names });
    t.deepEqual(await programs.findWithField(address, 'x\0"y'), {
      record,
      field: { type: "object", value: '{"n":12345678901234567890}' },
    });
    t.deepEqual(await programs.findWithField(address, "constructor"), { record, field: undefined });
    const entry = { address, name: program.name, owner: alice, encoding: "json" };
    t.like((await programs.listByOwner(alice, undefined, page))[0], entry);
    t.is(await programs.createdCount(), 1);
    await change(async (changes) => {
      t.deepEqual(await changes.find(address), { address, encoding: "json", type: "object", access: program.access });
      t.is(await changes.document(address), text);
      t.is(await changes.find(`stor-${"2".repeat(40)}`), undefined);
      t.is(await changes.document(`stor-${"2".repeat(40)}`), undefined);
    });
    t.is(await programs.findWithData(`stor-${"2".repeat(40)}`), undefined);
  });

  test(`${engine}: programs: many are asked for at once, and each gets its own`, async (t) => {
    const { programs, change } = await withProgram(await open(t));
    const addresses = Array.from({ length: 50 }, (_, i) => `stor-${String(i).padStart(40, "0")}`);
    await change(async (changes) => {
      for (const [i, one] of addresses.entries()) {
        await changes.insert({ ...program, address: one, content: json(`[${i}]`, "array") }, i);
      }
    });
    const asked = [...addresses, "stor-none", address, addresses[0]!];
    const found = await Promise.all(asked.map((one) => programs.findWithData(one)));
    t.deepEqual(
      found.map((one) => one?.data),
      [...addresses.map((_, i) => `[${i}]`), undefined, text, "[0]"],
    );
  });

  test(`${engine}: programs: a field is set where it stands, or behind the others, and deleted`, async (t) => {
    const { programs, change } = await withProgram(await open(t));
    const set = (field: string, value: string, whole: string, timeMs: number) =>
      change((changes) => changes.setField(address, { text: whole, sizeBytes: whole.length, field, value }, timeMs));
    const namesNow = async () => (await programs.findWithFieldNames(address))!.names;
    await set("a", '"new"', "{1}", 5);
    t.deepEqual(await namesNow(), ["b", "a", "__proto__", 'x\0"y']);
    t.deepEqual((await programs.findWithField(address, "a"))!.field, { type: "string", value: '"new"' });
    await set("constructor", "true", "{2}", 6);
    t.deepEqual(await namesNow(), ["b", "a", "__proto__", 'x\0"y', "constructor"]);
    await change((changes) => changes.deleteField(address, { text: "{3}", sizeBytes: 3, field: "a" }, 7));
    t.deepEqual(await namesNow(), ["b", "__proto__", 'x\0"y', "constructor"]);
    t.is((await programs.findWithField(address, "a"))!.field, undefined);
    t.like(await programs.findWithData(address), { data: "{3}", record: { sizeBytes: 3, updatedMs: 7 } });
  });

  test(`${engine}: programs: what one holds is replaced with its fields`, async (t) => {
    const { programs, change } = await withProgram(await open(t));
    const replace = (content: ProgramContent) => change((changes) => changes.replaceContent(address, content, 9));
    await replace({ encoding: "binary", type: "binary", text: '"AP8="', sizeBytes: 2 });
    t.like(await programs.findWithData(address), {
      data: '"AP8="',
      record: { encoding: "binary", type: "binary", sizeBytes: 2, updatedMs: 9, createdMs: 1_800_000_000_000 },
    });
    t.deepEqual((await programs.findWithFieldNames(address))!.names, []);
    await replace(undefined);
    t.like(await programs.findWithData(address), { data: undefined, record: { encoding: "json", type: "null" } });
    const fields = Array.from({ length: 1_200 }, (_, i) => `f${i}`);
    await replace(json(`{${fields.map((name) => `"${name}":1`).join(",")}}`, "object"));
    t.deepEqual((await programs.findWithFieldNames(address))!.names, fields);
    await change((changes) => changes.setField(address, { text: "{}", sizeBytes: 2, field: "first", value: "1" }, 10));
    t.deepEqual((await programs.findWithFieldNames(address))!.names, [...fields, "first"]);
  });

  test(`${engine}: programs: lists follow the rule, and forget what was deleted`, async (t) => {
    const { programs, change } = await withProgram(await open(t));
    const seenBy = async (identity: string | undefined): Promise<number> =>
      (await programs.search("größe", false, identity, page)).length;
    t.deepEqual([await seenBy(undefined), await seenBy(alice), await seenBy(bob)], [1, 1, 0]);
    const access = { ...program.access, mode: "restricted", allowed: [bob], blacklisted: [] } as const;
    await change((changes) => changes.setAccess(address, access, 11));
    t.deepEqual([await seenBy(undefined), await seenBy(alice), await seenBy(bob)], [0, 1, 1]);
    t.like((await programs.findWithData(address))!.record, { access, updatedMs: 11 });
    await change((changes) => changes.delete(address, 12));
    t.deepEqual([await seenBy(undefined), await seenBy(alice), await seenBy(bob)], [0, 0, 0]);
    t.is(await programs.findWithData(address), undefined);
    t.is(await programs.createdCount(), 1, "it was made all the same");
    await change(async (changes) => {
      t.is(await changes.find(address), undefined);
      t.is(await changes.document(address), undefined);
    });
  });
};
