import test from "ava";
import fc from "fast-check";
import { countItems, sliceItem } from "../../src/storage/documents/document.js";

test("sliceItem returns the text of any item of any array, as it was written", (t) => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.json(), fc.constantFrom("1.0", '"a,]\\\\\\""', "12345678901234567890", "[ [ ] , {} ]"))),
      fc.constantFrom("", " ", "\n\t"),
      (items, space) => {
        const text = `${space}[${space}${items.join(`${space},${space}`)}${space}]${space}`;
        for (const [index, item] of items.entries()) {
          t.is(sliceItem(text, index), item.trim());
        }
        t.is(sliceItem(text, items.length), undefined);
        t.is(countItems(text), items.length);
      },
    ),
  );
});

test("finds the last of 200,000 items", (t) => {
  const text = `[${Array.from({ length: 200_000 }, (_, i) => `{"i":[${i}]}`).join()}]`;
  t.is(sliceItem(text, 199_999), '{"i":[199999]}');
  t.is(sliceItem(text, 200_000), undefined);
  t.is(countItems(text), 200_000);
});
