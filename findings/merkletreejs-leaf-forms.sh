#!/usr/bin/env bash
# merkletreejs reads a leaf as hexadecimal digits if it looks so: the text "ab" is one byte, and the number 12 is byte 0x12.
#
# Version: merkletreejs 0.6.0.
# Behavior: texts of the letters a to f and digits become bytes, with or without "0x"; all other texts are encoded as UTF-8.
#   Numbers are written in decimal first, and their digits are then read as hexadecimal. A bigint of the same value is read
#   as a number.
# Seen: the bytes of the leaves "ab", "face", "fact", 12, 12n, and the equal roots of [12, 34] and [0x12n, 0x34n].
# Why it matters: two lists of different leaves have one root, and roots differ from those of any other library for a part
#   of the leaves only: of names, those that happen to be hexadecimal. Pass buffers, nothing else.
. "$(dirname "$0")/common.sh"

packages merkletreejs@0.6.0
program run.mjs <<'JS'
import { createHash } from "node:crypto";
import { MerkleTree } from "merkletreejs";

const sha256 = (data) => createHash("sha256").update(data).digest();
const tree = (leaves) => new MerkleTree(leaves, sha256);
for (const leaf of ["ab", "0xab", "face", "fact", "12", 12, 12n]) {
  const shown = typeof leaf === "bigint" ? `${leaf}n` : JSON.stringify(leaf);
  console.log(`${shown} is the leaf ${tree([leaf]).getLeaves()[0].toString("hex")}`);
}
const root = (leaves) => tree(leaves).getHexRoot();
console.log("[12, 34] and [18n, 52n] have one root:", root([12, 34]) === root([18n, 52n]));
console.log("[12, 34] and [12n, 34n] have one root:", root([12, 34]) === root([12n, 34n]));
JS
shows node run.mjs <<'SEEN'
"ab" is the leaf ab
"0xab" is the leaf ab
"face" is the leaf face
"fact" is the leaf 66616374
"12" is the leaf 12
12 is the leaf 12
12n is the leaf 0c
[12, 34] and [18n, 52n] have one root: true
[12, 34] and [12n, 34n] have one root: false
SEEN
