/** Cached list entries: each row is checked once, and again after it has changed. */
import test from "ava";
import { CorruptionError } from "../../src/base/errors/corruption.js";
import { createProgramStore } from "../../src/storage/stores/program-store.js";
import { prepareEngines } from "../helpers/databases/databases.js";
import { insertProgram } from "../helpers/chain/seed.js";
import { fillRowHashes } from "../helpers/databases/fill-row-hashes.js";

const engines = await prepareEngines();

for (const engine of engines.names) {
  test(`${engine}: a list returns the same entry object until the row changes, and detects corruption`, async (t) => {
    const database = await engines.open(t, engine);
    const address = `stor-${"1".repeat(40)}`;
    const other = `stor-${"2".repeat(40)}`;
    for (const [i, each] of [address, other].entries()) {
      await insertProgram(database, {
        address: each,
        owner: "0xa",
        name: "a",
        mode: "public",
        type: "null",
        createdMs: i,
      });
    }
    const programs = createProgramStore(database.read);
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
