import test from "ava";
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

/** A repository whose program changes, which counts its reads and can be held up. */
function createSource() {
  const state = { version: "1" as string | undefined, reads: 0, hold: Promise.resolve() };
  const find = async <T extends object>(more: (version: string) => T) => {
    state.reads++;
    const { version } = state;
    await state.hold;
    return version === undefined ? undefined : { record: record(version), ...more(version) };
  };
  const programs: Programs = {
    findWithData: () => find((version) => ({ data: version })),
    findWithFieldNames: () => find((version) => ({ names: [version] })),
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

test("from the second read on a program is kept, until it changes", async (t) => {
  const { state, programs } = createSource();
  const cache = createProgramCache(programs, 48 * 1024 * 1024);
  await cache.findWithData("stor-1");
  for (let i = 0; i < 3; i++) {
    t.is((await cache.findWithData("stor-1"))!.data, "1");
    t.deepEqual((await cache.findWithFieldNames("stor-1"))!.names, ["1"]);
    t.is((await cache.findWithField("stor-1", "a"))!.field!.value, "1");
    t.is((await cache.findWithField("stor-1", "b"))!.field, undefined);
  }
  t.is(state.reads, 1 + 4);
  state.version = "2";
  cache.invalidate("stor-1");
  t.is((await cache.findWithData("stor-1"))!.data, "2");
  t.is((await cache.findWithField("stor-1", "a"))!.field!.value, "2");
  t.is((await cache.findWithField("stor-1", "a"))!.record.name, "2");
  state.version = undefined;
  cache.invalidate("stor-1");
  t.is(await cache.findWithData("stor-1"), undefined);
});

test("an array that is small is kept for all of its items, a chunk of a large one is not", async (t) => {
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

test("a read that a change overtakes is not kept", async (t) => {
  const { state, programs } = createSource();
  const cache = createProgramCache(programs, 48 * 1024 * 1024);
  await cache.findWithFieldNames("stor-1");
  let release = (): void => undefined;
  state.hold = new Promise((resolve) => (release = resolve));
  const slow = cache.findWithData("stor-1");
  state.version = "2";
  cache.invalidate("stor-1");
  release();
  t.is((await slow)!.data, "1");
  t.is((await cache.findWithData("stor-1"))!.data, "2");
});

test("who reads everything once drives nothing out", async (t) => {
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

test("asking for fields that are not there fills no memory", async (t) => {
  const { programs } = createSource();
  const cache = createProgramCache(programs, 48 * 1024 * 1024);
  const before = process.memoryUsage().heapUsed;
  for (let i = 0; i < 20_000; i++) {
    await cache.findWithField("stor-1", `field ${i % 5_000}`);
  }
  t.true(process.memoryUsage().heapUsed - before < 50 * 1024 ** 2);
});
