import test from "ava";
import { isImmutable } from "../../src/base/caches/immutable.js";
import { createProgramCache } from "../../src/storage/programs/program-cache.js";
import type { ProgramRecord, Programs } from "../../src/storage/programs/programs.js";

const record = (name: string): ProgramRecord => ({
  address: "stor-1",
  name,
  encoding: "json",
  type: "object",
  access: { owner: "0xa", mode: "public", allowed: [], blacklisted: [], groups: {} },
  metadata: undefined,
  sizeBytes: 1,
  createdMs: 1,
  updatedMs: 1,
});

/** Creates a store whose program can change. It counts its reads, and each read waits for `delay`. */
function createSource() {
  const state = { version: "1" as string | undefined, reads: 0, delay: Promise.resolve() };
  const find = async <T extends object>(more: (version: string) => T) => {
    state.reads++;
    const { version } = state;
    await state.delay;
    return version === undefined ? undefined : { record: record(version), ...more(version) };
  };
  const programs: Programs = {
    findWithData: () => find((version) => ({ data: version })),
    findWithField: (_address, name) =>
      find((version) => ({ field: name === "a" ? { type: "number" as const, value: version } : undefined })),
    findWithItem: (_address, name, index) =>
      find((version) => ({
        field:
          name === "large"
            ? { type: "array" as const, value: `,${version}`, chunk: { firstItem: index, arrayItems: 9 } }
            : { type: "array" as const, value: `[${version}]` },
      })),
    listByOwner: () => Promise.resolve([]),
    search: () => Promise.resolve([]),
    createdCount: () => Promise.resolve(0),
  };
  return { state, programs };
}

test("caches a program from its second read on, until it changes", async (t) => {
  const { state, programs } = createSource();
  const cache = createProgramCache(programs, 48 * 1024 * 1024);
  await cache.findWithData("stor-1");
  for (let i = 0; i < 3; i++) {
    t.is((await cache.findWithData("stor-1"))!.data, "1");
    t.is((await cache.findWithField("stor-1", "a"))!.field!.value, "1");
    t.is((await cache.findWithField("stor-1", "b"))!.field, undefined);
  }
  t.is(state.reads, 1 + 3);
  state.version = "2";
  cache.invalidate("stor-1");
  t.is((await cache.findWithData("stor-1"))!.data, "2");
  t.is((await cache.findWithField("stor-1", "a"))!.field!.value, "2");
  t.is((await cache.findWithField("stor-1", "a"))!.record.name, "2");
  state.version = undefined;
  cache.invalidate("stor-1");
  t.is(await cache.findWithData("stor-1"), undefined);
});

test("concurrent reads return the cached object, so that they share one response", async (t) => {
  const { state, programs } = createSource();
  const cache = createProgramCache(programs, 48 * 1024 * 1024);
  const reads = [1, 2, 3].map(() => cache.findWithData("stor-1"));
  const items = [1, 2, 3].map(() => cache.findWithItem("stor-1", "list", 0));
  const [full, ...others] = await Promise.all(reads);
  t.true(isImmutable(full));
  t.true(others.every((other) => other === full));
  t.is(await cache.findWithData("stor-1"), full);
  t.true((await Promise.all(items)).every((item) => isImmutable(item)));
  t.is(state.reads, 2);
});

test("caches a small array for all of its items, but no chunk of a large array", async (t) => {
  const { state, programs } = createSource();
  const cache = createProgramCache(programs, 48 * 1024 * 1024);
  await cache.findWithItem("stor-1", "list", 0);
  for (const index of [0, 1, 2]) {
    t.deepEqual((await cache.findWithItem("stor-1", "list", index))!.field, { type: "array", value: "[1]" });
  }
  t.is((await cache.findWithField("stor-1", "list"))!.field!.value, "[1]");
  t.is(state.reads, 2);
  for (const index of [3, 4]) {
    const { field } = (await cache.findWithItem("stor-1", "large", index))!;
    t.is(field!.chunk!.firstItem, index);
  }
  t.is(state.reads, 4);
  state.version = "2";
  cache.invalidate("stor-1");
  t.is((await cache.findWithItem("stor-1", "list", 0))!.field!.value, "[2]");
  t.is((await cache.findWithItem("stor-1", "large", 0))!.field!.value, ",2");
});

test("does not cache a read during which the program changed", async (t) => {
  const { state, programs } = createSource();
  const cache = createProgramCache(programs, 48 * 1024 * 1024);
  await cache.findWithField("stor-1", "a");
  let release = (): void => undefined;
  state.delay = new Promise((resolve) => (release = resolve));
  const slow = cache.findWithData("stor-1");
  state.version = "2";
  cache.invalidate("stor-1");
  release();
  t.is((await slow)!.data, "1");
  t.is((await cache.findWithData("stor-1"))!.data, "2");
});

test("reading every program once evicts nothing", async (t) => {
  const { state, programs } = createSource();
  const cache = createProgramCache(programs, 48 * 1024 * 1024);
  await cache.findWithData("stor-1");
  await cache.findWithData("stor-1");
  for (let i = 0; i < 100_000; i++) {
    await cache.findWithData(`stor-other-${i}`);
  }
  const { reads } = state;
  await cache.findWithData("stor-1");
  t.is(state.reads, reads);
});

test("requests for missing fields do not fill the memory", async (t) => {
  const { programs } = createSource();
  const cache = createProgramCache(programs, 48 * 1024 * 1024);
  const before = process.memoryUsage().heapUsed;
  for (let i = 0; i < 20_000; i++) {
    await cache.findWithField("stor-1", `field ${i % 5_000}`);
  }
  t.true(process.memoryUsage().heapUsed - before < 50 * 1024 ** 2);
});

test("a hidden program is read as often as one that does not exist, also while its owner has it cached", async (t) => {
  const { state, programs } = createSource();
  const queries: string[] = [];
  const hidden = { ...record("1"), access: { ...record("1").access, mode: "owner" as const } };
  const find = (address: string, reader: { identity: string | undefined } | undefined, what: string) => {
    queries.push(`${what} of ${address}`);
    const isSeen = address === "stor-hidden" && (reader === undefined || reader.identity === "0xa");
    return Promise.resolve(
      isSeen ? { record: hidden, data: "1", field: { type: "array" as const, value: "[1]" } } : undefined,
    );
  };
  const cache = createProgramCache(
    {
      ...programs,
      findWithData: (address, reader) => find(address, reader, "data"),
      findWithField: (address, name, reader) => find(address, reader, name),
      findWithItem: (address, name, index, reader) => find(address, reader, `${name} ${index}`),
    },
    48 * 1024 * 1024,
  );
  const readAll = async (address: string, identity: string | undefined) => {
    queries.length = 0;
    const found: unknown[] = [];
    for (let i = 0; i < 3; i++) {
      found.push(await cache.findWithData(address, { identity }));
      found.push(await cache.findWithField(address, "a", { identity }));
      found.push(await cache.findWithItem(address, "a", 0, { identity }));
    }
    return { found, queries: queries.map((query) => query.replace(address, "it")) };
  };
  const own = await readAll("stor-hidden", "0xa");
  t.true(own.found.every((found) => found !== undefined));
  t.true(own.queries.length < 9, "the owner reads from the cache");
  for (const identity of [undefined, "0xb"]) {
    const [ofHidden, ofAbsent] = [await readAll("stor-hidden", identity), await readAll("stor-absent", identity)];
    t.deepEqual(ofHidden, ofAbsent);
    t.true(ofHidden.found.every((found) => found === undefined));
    t.is(ofHidden.queries.length, 9);
  }
  const [first, second] = [
    cache.findWithField("stor-hidden", "b", { identity: "0xb" }),
    cache.findWithField("stor-hidden", "b", { identity: "0xa" }),
  ];
  t.deepEqual([await first, (await second)!.record.name], [undefined, "1"], "concurrent reads are not shared");
  t.is(state.reads, 0);
});
