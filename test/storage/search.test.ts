import test from "ava";
import fc from "fast-check";
import type { Engine } from "../../src/db/queries/dialects.js";
import { createProgramStore } from "../../src/storage/stores/program-store.js";
import { foldName } from "../../src/storage/programs/programs.js";
import { insertProgram } from "../helpers/chain/seed.js";
import { prepareEngines } from "../helpers/databases/databases.js";
import type { Teardown } from "../helpers/nodes/teardown.js";

const engines = await prepareEngines();

async function withNames(t: Teardown, engine: Engine, names: readonly string[]) {
  const database = await engines.open(t, engine);
  for (const [i, name] of names.entries()) {
    const address = `stor-${i.toString(16).padStart(40, "0")}`;
    await insertProgram(database, { address, owner: "0xa", name, mode: "public", type: "null", createdMs: i });
  }
  const programs = createProgramStore(database.read);
  return async (query: string, exact = false): Promise<string[]> =>
    (await programs.search(query, exact, undefined, { limit: 1_000, offset: 0 })).map(({ name }) => name);
}

for (const engine of engines.names) {
  test(`${engine}: finds names by any part of them, latest first, regardless of case in any script`, async (t) => {
    const search = await withNames(t, engine, [
      "Alpha",
      "100% sure",
      "a_b",
      'say "hi"',
      "Größe",
      "ключи",
      "ΣΊΣΥΦΟΣ",
      "alphabet",
      "x😀yz",
    ]);
    t.deepEqual(await search("ALPHA"), ["alphabet", "Alpha"]);
    t.deepEqual(await search("%"), ["100% sure"]);
    t.deepEqual(await search("0% s"), ["100% sure"]);
    t.deepEqual(await search("_"), ["a_b"]);
    t.deepEqual(await search("a_b"), ["a_b"]);
    t.deepEqual(await search("axb"), []);
    t.deepEqual(await search('"hi"'), ['say "hi"']);
    t.deepEqual(await search('" OR 1'), []);
    t.deepEqual(await search("GRÖSSE"), []);
    t.deepEqual(await search("RÖß"), ["Größe"]);
    t.deepEqual(await search("КЛЮ"), ["ключи"]);
    t.deepEqual(await search("σίσ"), ["ΣΊΣΥΦΟΣ"]);
    t.deepEqual(await search("ph"), ["alphabet", "Alpha"]);
    t.deepEqual(await search("😀y"), ["x😀yz"]);
    t.deepEqual(await search("😀yz"), ["x😀yz"]);
    t.deepEqual(await search("alpha", true), []);
    t.deepEqual(await search("Alpha", true), ["Alpha"]);
  });

  test(`${engine}: search finds what String.includes finds, on random names`, async (t) => {
    const part = fc.string({
      unit: fc.constantFrom("a", "B", "%", "_", '"', "'", "!", "*", " ", "é", "😀", "-"),
      maxLength: 8,
    });
    const [names] = fc.sample(fc.array(part, { minLength: 200, maxLength: 200 }), 1);
    const search = await withNames(t, engine, names!);
    for (const query of fc.sample(
      part.filter((text) => text !== ""),
      300,
    )) {
      const expected = names!.filter((name) => foldName(name).includes(foldName(query))).reverse();
      t.deepEqual(await search(query), expected, JSON.stringify(query));
    }
  });
}
