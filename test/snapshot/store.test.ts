/** Store of snapshots, whose disk may fail: a snapshot that cannot be read is no corrupt one. */
import test from "ava";
import { existsSync } from "node:fs";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { markDatabaseError } from "../../src/base/errors/database-error-kind.js";
import { createBlockStore } from "../../src/chain/blocks/block-store.js";
import { openForReading } from "../../src/db/open.js";
import { writeSnapshot } from "../../src/node/chain/snapshots.js";
import { chunkName, descriptionName } from "../../src/snapshot/build.js";
import { openSnapshotStore } from "../../src/snapshot/store.js";
import { testKey } from "../helpers/chain/keys.js";
import { makeRichChain } from "../helpers/chain/rich-chain.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";

/** Stores a snapshot. Returns its folder, and a function that opens the store. */
async function storeSnapshot(t: Teardown) {
  const dir = await temporaryDirectory(t);
  const folder = join(dir, "snapshots");
  const file = join(dir, "source.sqlite");
  await makeRichChain(file, testKey(1), 12);
  const corrupt: string[] = [];
  const open = (numberOf = (): Promise<bigint | undefined> => Promise.resolve(12n)) =>
    openSnapshotStore({ folder, numberOf, nowMs: Date.now, onCorrupt: (path) => corrupt.push(path) });
  const store = await open();
  const database = await openForReading(`sqlite:${file}`);
  t.teardown(() => database.close());
  const head = (await createBlockStore(database.read).head())!;
  const draft = await store.newFolder();
  const options = { folder: draft, signal: new AbortController().signal, chunkBytes: 8 * 1024 };
  await store.add(head.number, await database.withSnapshot((db) => writeSnapshot(db, head, options)));
  const [{ id, snapshot }] = store.list() as [ReturnType<typeof store.list>[number]];
  const index = snapshot.chunks.findIndex(({ node }) => node.case !== undefined);
  return { open, store, corrupt, id, index, path: join(folder, `${head.number}-${id.slice(2, 18)}`) };
}

/** Replaces a file by a directory, whose read fails like that of a broken disk. Returns a function that puts it back. */
async function makeUnreadable(path: string): Promise<() => Promise<void>> {
  await rename(path, `${path}.intact`);
  await mkdir(path);
  return async () => {
    await rm(path, { recursive: true });
    await rename(`${path}.intact`, path);
  };
}

test("a chunk that cannot be read is an error, and the snapshot stays; a corrupt chunk removes it", async (t) => {
  const { store, corrupt, id, index, path } = await storeSnapshot(t);
  const chunk = join(path, chunkName(index));
  const restore = await makeUnreadable(chunk);
  await t.throwsAsync(store.chunk(id, index), { code: "EISDIR" });
  await restore();
  t.truthy(await store.chunk(id, index));
  t.deepEqual(corrupt, []);

  await writeFile(chunk, "other");
  t.is(await store.chunk(id, index), undefined);
  t.deepEqual(corrupt, [chunk]);
  t.false(existsSync(path));
});

test("a start keeps a snapshot that it cannot read, and removes a corrupt one", async (t) => {
  const { open, path, id } = await storeSnapshot(t);
  const restore = await makeUnreadable(join(path, descriptionName));
  t.deepEqual((await open()).list(), []);
  await restore();
  const away = new Error("The database is away.");
  markDatabaseError(away);
  t.deepEqual((await open(() => Promise.reject(away))).list(), []);
  t.is((await open()).list()[0]!.id, id);

  await writeFile(join(path, descriptionName), "other");
  t.deepEqual((await open()).list(), []);
  t.false(existsSync(path));
});
