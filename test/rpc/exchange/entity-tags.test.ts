import test from "ava";
import { checkIfMatch, matchesIfNoneMatch } from "../../../src/rpc/exchange/caching.js";

const weak = 'W/"7.abc"';

test("matches a tag alone or in a list, weak or strong", (t) => {
  for (const shown of [
    weak,
    '"7.abc"',
    `"other", ${weak}`,
    `${weak},"other"`,
    `,, ${weak} ,\t,`,
    '"a,b" , "7.abc"',
    "*",
    " * ",
  ]) {
    t.true(matchesIfNoneMatch(weak, shown), shown);
  }
  t.true(matchesIfNoneMatch('"strong"', 'W/"strong"'));
});

test("does not match another tag or a malformed list", (t) => {
  for (const shown of [
    ...[undefined, "", " ", ",", '"7.abd"', 'W/"7.ab"', '"7.abc ', '7.abc"', "7.abc", "W/7.abc", 'w/"7.abc"'],
    ...[`"other" ${weak}`, `x, ${weak}`, `${weak}x`, `${weak}, *`, `"a"b", ${weak}`, `${weak}, "open`, '"7.abc\u0001"'],
  ]) {
    t.false(matchesIfNoneMatch(weak, shown), String(shown));
  }
});

test("parses a long If-None-Match in linear time", (t) => {
  for (const piece of [" ", ",", '"', 'W/"', "W/", '"a",', '"a" ', "\t, "]) {
    const long = piece.repeat(Math.ceil(16_384 / piece.length));
    t.false(matchesIfNoneMatch(weak, `${long}x`));
    t.is(matchesIfNoneMatch(weak, `${long}${weak}`), /^[ ,\t]*$/.test(piece) || piece === '"a",', piece);
  }
});

test("compares tags of If-Match strongly", (t) => {
  for (const [etag, ifMatch] of [
    ['"a"', '"a"'],
    ['"a"', '"b", W/"c", "a"'],
    [weak, "*"],
    [undefined, " * "],
    ['"a"', undefined],
  ] as const) {
    t.notThrows(() => checkIfMatch({ header: () => ifMatch }, etag), `${etag} ${ifMatch}`);
  }
  for (const [etag, ifMatch] of [
    ['"a"', 'W/"a"'],
    ['"a"', '"b"'],
    ['"a"', '"a'],
    ['"a"', ""],
    [weak, weak],
    [weak, '"7.abc"'],
    [undefined, '"a"'],
  ] as const) {
    const error = t.throws(() => checkIfMatch({ header: () => ifMatch }, etag), undefined, `${etag} ${ifMatch}`);
    t.regex(error.message, /, which If-Match does not name; omit If-Match\.$/);
  }
});
