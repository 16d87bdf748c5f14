import test from "ava";
import { isImmutable, makeImmutable } from "../../src/base/caches/immutable.js";

test("an immutable value cannot be changed at any depth", (t) => {
  const value = makeImmutable({ a: { b: [{ c: 1 }] } });
  t.true(isImmutable(value));
  t.throws(() => Object.assign(value, { a: undefined }), { instanceOf: TypeError });
  t.throws(() => Object.assign(value.a.b[0]!, { c: 2 }), { instanceOf: TypeError });
  t.throws(() => value.a.b.push({ c: 3 }), { instanceOf: TypeError });
});

test("a frozen value may contain mutable values, so it is not immutable", (t) => {
  t.false(isImmutable(Object.freeze({ a: [] })));
  t.false(isImmutable({}));
  t.false(isImmutable(undefined));
  t.false(isImmutable("text"));
});

test("values that stay mutable when frozen cannot be made immutable", (t) => {
  for (const part of [Buffer.alloc(1), new Uint8Array(1), new Map(), new Set(), new Date()]) {
    const value = { part };
    t.throws(() => makeImmutable(value), { instanceOf: TypeError, message: /cannot be made immutable/ });
    t.false(isImmutable(value));
  }
});

test("an immutable part is not visited again", (t) => {
  let visits = 0;
  const part = makeImmutable({
    get inner() {
      visits++;
      return {};
    },
  });
  t.is(visits, 1);
  t.true(isImmutable(makeImmutable([part, part])));
  t.is(visits, 1);
});
