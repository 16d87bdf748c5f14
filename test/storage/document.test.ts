/** Texts of documents, for any JSON: the positions of members and items, and changes that keep the other text. */
import test from "ava";
import fc from "fast-check";
import { checkJson } from "../../src/storage/changes/check-operation.js";
import {
  countItems,
  deleteMember,
  itemsOf,
  membersOf,
  setMember,
  sliceItem,
} from "../../src/storage/documents/document.js";

const json = fc.json({ maxDepth: 3 });
const space = fc.constantFrom("", " ", "\n\t");

test("itemsOf and sliceItem return the text of any item of any array, as it was written", (t) => {
  const item = fc.oneof(json, fc.constantFrom("1.0", '"a,]\\\\\\""', "12345678901234567890", "[ [ ] , {} ]"));
  fc.assert(
    fc.property(fc.array(item), space, (items, around) => {
      const text = `${around}[${around}${items.join(`${around},${around}`)}${around}]${around}`;
      const expected = items.map((one) => one.trim());
      t.deepEqual(
        itemsOf(text).map(({ start, end }) => text.slice(start, end)),
        expected,
      );
      t.deepEqual(
        [...items, "none"].map((_, index) => sliceItem(text, index)),
        [...expected, undefined],
      );
      t.is(countItems(text), items.length);
    }),
  );
});

const object = fc
  .uniqueArray(fc.tuple(fc.string({ maxLength: 6 }), json), { selector: ([name]) => name, maxLength: 6 })
  .chain((members) =>
    space.map((around) => ({
      text: `${around}{${around}${members.map(([name, value]) => `${JSON.stringify(name)}${around}:${around}${value}`).join(`${around},${around}`)}${around}}${around}`,
      names: members.map(([name]) => name),
    })),
  );

test("setMember and deleteMember change any member of any object, and nothing else", (t) => {
  fc.assert(
    fc.property(object, fc.string({ maxLength: 6 }), json, ({ text, names }, name, value) => {
      const entries = (json: string) =>
        membersOf(json).map((m) => [m.name, json.slice(m.valueStart, m.valueEnd)] as const);
      t.deepEqual(
        entries(text).map(([own]) => own),
        names,
      );
      const after = setMember(text, name, value);
      t.notThrows(() => JSON.parse(after) as unknown);
      const expected = new Map(entries(text)).set(name, value.trim());
      t.deepEqual(new Map(entries(after)), expected);
      const without = deleteMember(after, name)!;
      t.notThrows(() => JSON.parse(without) as unknown);
      expected.delete(name);
      t.deepEqual(new Map(entries(without)), expected);
      t.is(deleteMember(without, name), undefined);
    }),
  );
});

test("checkJson finds duplicate names at any depth", (t) => {
  fc.assert(
    fc.property(json, (text) => {
      t.notThrows(() => checkJson(text, { subject: "It" }));
      t.throws(() => checkJson(`[{"k":1,"x":${text},"k":2}]`, { subject: "It" }), {
        message: "It has an object with duplicate member names.",
      });
    }),
  );
});
