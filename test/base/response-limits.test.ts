import { toBinary } from "@bufbuild/protobuf";
import test from "ava";
import { BookEntrySchema } from "../../gen/gatehouse/control/v1/control_pb.js";
import { DiagnosticLineSchema, PeerSchema } from "../../gen/gatehouse/info/v1/info_pb.js";
import { createListCutter, maxListBytes, estimateBytes } from "../../src/base/limits/response-limits.js";
import { makeImmutable } from "../../src/base/caches/immutable.js";
import { createRandom, randomMessage } from "../helpers/wire/random-message.js";
import { referenceJson } from "../helpers/wire/reference-json.js";

for (const desc of [PeerSchema, BookEntrySchema, DiagnosticLineSchema]) {
  test(`the estimated size of a ${desc.typeName} is an upper limit`, (t) => {
    const random = createRandom(7);
    for (let i = 0; i < 500; i++) {
      const message = randomMessage(desc, random);
      const { $typeName: _, ...literal } = message;
      const estimate = estimateBytes(literal);
      t.true(Buffer.byteLength(referenceJson(desc, message)) + 1 <= estimate);
      t.true(toBinary(desc, message as never).length + 8 <= estimate);
    }
  });
}

const itemsOf = (count: number, length: number) =>
  Array.from({ length: count }, (_, i) => ({ text: String(i).padEnd(length, "\u0001") }));

test("a list that fits is returned unchanged", (t) => {
  const cut = createListCutter();
  const list = itemsOf(100, 100);
  t.deepEqual(cut(list), { items: list, nextOffset: undefined });
  t.is(cut(list).items, list);
  t.is(cut(makeImmutable(list)).items, list);
  t.deepEqual(cut(list, 99), { items: list.slice(99), nextOffset: undefined });
  t.deepEqual(cut(list, 100), { items: [], nextOffset: undefined });
  t.deepEqual(cut(list, 4_000_000_000), { items: [], nextOffset: undefined });
  t.deepEqual(cut([]), { items: [], nextOffset: undefined });
});

for (const kind of ["a list", "an immutable list"]) {
  test(`splits ${kind} into parts close to the size limit`, (t) => {
    const cut = createListCutter<{ text: string }>();
    const list = itemsOf(1_000, 2_000);
    if (kind === "an immutable list") {
      makeImmutable(list);
    }
    const all: { text: string }[] = [];
    let offset: number | undefined = 0;
    let parts = 0;
    while (offset !== undefined) {
      const { items, nextOffset }: ReturnType<typeof cut> = cut(list, offset);
      t.true(Buffer.byteLength(JSON.stringify(items)) <= maxListBytes);
      t.true(nextOffset === undefined || Buffer.byteLength(JSON.stringify(items)) > 0.9 * maxListBytes);
      t.is(cut(list, offset).nextOffset, nextOffset);
      all.push(...items);
      offset = nextOffset;
      parts++;
    }
    t.deepEqual(all, list);
    t.is(parts, 3);
  });
}

test("an item above the size limit is a part of its own", (t) => {
  const cut = createListCutter();
  const list = [{ text: "a" }, { text: "x".repeat(maxListBytes) }, { text: "b" }];
  t.deepEqual(
    [cut(list), cut(list, 1), cut(list, 2)].map(({ items, nextOffset }) => [items.length, nextOffset]),
    [
      [1, 1],
      [1, 2],
      [1, undefined],
    ],
  );
});
