#!/usr/bin/env bash
# t.like of AVA accepts longer arrays, and t.deepEqual compares the order of sets but not the causes of errors.
#
# Version: ava 7.0.0.
# Behavior: t.like compares what the expected value has. For arrays, that is their elements by position: further elements
#   of the actual array are not looked at, at any depth. t.deepEqual rejects two sets or maps with the same members in
#   another order, and accepts errors with different causes, and two different URL objects.
# Seen: the verdict on eight comparisons.
# Why it matters: a test that lists all subscribers, blocks or proofs by t.like passes if the node returns more of them, or
#   duplicates. Tests of errors need their own look at the cause, tests of URLs a comparison of text.
. "$(dirname "$0")/common.sh"

packages ava@7.0.0
program package.json.test <<'JSON'
{ "type": "module", "ava": { "files": ["*.test.js"] } }
JSON
program all.test.js <<'JS'
import test from "ava";

test("like: a longer array", (t) => t.like([1, 2], [1]));
test("like: a shorter array", (t) => t.like([1], [1, 2]));
test("like: a longer array inside", (t) => t.like({ blocks: [{ height: 1 }, { height: 2 }] }, { blocks: [{ height: 1 }] }));
test("deepEqual: sets in another order", (t) => t.deepEqual(new Set([1, 2]), new Set([2, 1])));
test("deepEqual: maps in another order", (t) => t.deepEqual(new Map([[1, 1], [2, 2]]), new Map([[2, 2], [1, 1]])));
test("deepEqual: objects in another order", (t) => t.deepEqual({ a: 1, b: 2 }, { b: 2, a: 1 }));
test("deepEqual: errors with other causes", (t) => t.deepEqual(new Error("x", { cause: 1 }), new Error("x", { cause: 2 })));
test("deepEqual: other URLs", (t) => t.deepEqual(new URL("http://a.example/"), new URL("http://b.example/")));
JS
program run.sh <<'SH'
mkdir tests
mv package.json.test tests/package.json
mv all.test.js tests/
cd tests
node ../node_modules/ava/entrypoints/cli.mjs --tap | sed -nE 's/^(ok|not ok) [0-9]+ - (.*)/\2: \1/p' | sort
SH
shows bash run.sh <<'SEEN'
deepEqual: errors with other causes: ok
deepEqual: maps in another order: not ok
deepEqual: objects in another order: ok
deepEqual: other URLs: ok
deepEqual: sets in another order: not ok
like: a longer array inside: ok
like: a longer array: ok
like: a shorter array: not ok
SEEN
