/** Lists of programs: search by name, and cached entries. */
import test from "ava";
import fc from "fast-check";
import { CorruptionError } from "../../src/base/errors/corruption.js";
import type { Engine } from "../../src/db/queries/dialects.js";
import { createProgramStore } from "../../src/storage/stores/program-store.js";
import { foldName } from "../../src/storage/programs/programs.js";
import { insertProgram } from "../helpers/chain/seed.js";
import { prepareEngines } from "../helpers/databases/databases.js";
import { fillRowHashes } from "../helpers/databases/fill-row-hashes.js";
import type { Teardown } from "../helpers/nodes/teardown.js";

const engines = await prepareEngines();

async function withNames(t: Teardown, engine: Engine, names: readonly string[]) {
  const database = await engines.open(t, engine);
  for (const [i, name] of names.entries()) {
    const address = `stor-${i.toString(16).padStart(40, "0")}`;
    await insertProgram(database, { address, owner: "0xa", name, mode: "public", type: "null", createdMs: i });
  }
  const programs = createProgramStore(database.read);
  const search = async (query: string, exact = false): Promise<string[]> =>
    (await programs.search(query, exact, undefined, { limit: 1_000, offset: 0 })).map(({ name }) => name);
  return { database, programs, search };
}

const names = ["Alpha", "100% sure", "a_b", 'say "hi"', "Größe", "ключи", "ΣΊΣΥΦΟΣ", "alphabet", "x😀yz"];

/** Queries, and the names that each finds, latest first. */
const queries: readonly (readonly [query: string, found: readonly string[]])[] = [
  ["ALPHA", ["alphabet", "Alpha"]],
  ["%", ["100% sure"]],
  ["0% s", ["100% sure"]],
  ["_", ["a_b"]],
  ["a_b", ["a_b"]],
  ["axb", []],
  ['"hi"', ['say "hi"']],
  ['" OR 1', []],
  ["GRÖSSE", []],
  ["RÖß", ["Größe"]],
  ["КЛЮ", ["ключи"]],
  ["σίσ", ["ΣΊΣΥΦΟΣ"]],
  ["ph", ["alphabet", "Alpha"]],
  ["😀y", ["x😀yz"]],
  ["😀yz", ["x😀yz"]],
];

for (const engine of engines.names) {
  test(`${engine}: finds names by any part of them, latest first, regardless of case in any script`, async (t) => {
    const { search } = await withNames(t, engine, names);
    for (const [query, found] of queries) {
      t.deepEqual(await search(query), found, query);
    }
    t.deepEqual(await search("alpha", true), []);
    t.deepEqual(await search("Alpha", true), ["Alpha"]);
  });

  test(`${engine}: search finds what String.includes finds, on random names`, async (t) => {
    const part = fc.string({
      unit: fc.constantFrom("a", "B", "%", "_", '"', "'", "!", "*", " ", "é", "😀", "-"),
      maxLength: 8,
    });
    const [random] = fc.sample(fc.array(part, { minLength: 200, maxLength: 200 }), 1);
    const { search } = await withNames(t, engine, random!);
    for (const query of fc.sample(
      part.filter((text) => text !== ""),
      300,
    )) {
      const expected = random!.filter((name) => foldName(name).includes(foldName(query))).reverse();
      t.deepEqual(await search(query), expected, JSON.stringify(query));
    }
  });

  test(`${engine}: a list returns the same entry object until the row changes, and detects corruption`, async (t) => {
    const { database, programs } = await withNames(t, engine, ["a", "a"]);
    const address = `stor-${"0".repeat(40)}`;
    const list = () => programs.listByOwner("0xa", undefined, { limit: 10, offset: 0 });
    const change = (columns: object) => database.write.run((sql) => sql("programs").where({ address }).update(columns));
    const [unchanged, first] = await list();
    t.is((await list())[1], first);
    t.is((await programs.search("a", true, undefined, { limit: 10, offset: 0 }))[1], first);

    await change({ size_bytes: 77, entry_hash: "" });
    await fillRowHashes(database.write);
    const changed = await list();
    t.is(changed[1]!.sizeBytes, 77);
    t.is(first!.sizeBytes, 0);
    t.is(changed[0], unchanged);

    await change({ size_bytes: 78 });
    await t.throwsAsync(list(), { instanceOf: CorruptionError });
    await change({ size_bytes: 77 });
    t.is((await list())[1]!.sizeBytes, 77);
  });
}
