import test from "ava";
import { isImmutable, makeImmutable } from "../../src/base/caches/immutable.js";

test("an immutable value cannot be changed at any depth", (t) => {
  const value = makeImmutable({ a: { b: [{ c: 1 }] } });
  t.true(isImmutable(value));
  t.throws(() => Object.assign(value, { a: undefined }), { instanceOf: TypeError });
  t.throws(() => Object.assign(value.a.b[0]!, { c: 2 }), { instanceOf: TypeError });
  t.throws(() => value.a.b.push({ c: 3 }), { instanceOf: TypeError });
});

test("what is frozen may hold what changes, so it is not immutable", (t) => {
  t.false(isImmutable(Object.freeze({ a: [] })));
  t.false(isImmutable({}));
  t.false(isImmutable(undefined));
  t.false(isImmutable("text"));
});

test("what changes although it is frozen cannot be made immutable", (t) => {
  for (const part of [Buffer.alloc(1), new Uint8Array(1), new Map(), new Set(), new Date()]) {
    const value = { part };
    t.throws(() => makeImmutable(value), { instanceOf: TypeError, message: /cannot be made immutable/ });
    t.false(isImmutable(value));
  }
});

test("a part that was immutable before is not looked at again", (t) => {
  let looks = 0;
  const part = makeImmutable({
    get inner() {
      looks++;
      return {};
    },
  });
  t.is(looks, 1);
  t.true(isImmutable(makeImmutable([part, part])));
  t.is(looks, 1);
});
