#!/usr/bin/env bash
# json-bigint with useNativeBigInt rejects a whole document because of one ordinary decimal of 16 characters.
#
# Version: json-bigint 1.0.0; lossless-json 4.3.3 for comparison.
# Behavior: the package decides by the length of the text, before it looks for a decimal point: more than 15 characters are
#   a big number, and BigInt("0.1234567890123456") throws. Without the option, such a decimal becomes a BigNumber object,
#   and so does the safe integer 1000000000000000.
# Seen: the types of 999999999999999 and 1000000000000000, and what becomes of a ratio with 16 decimals.
# Why it matters: the usual advice for exact 64-bit numbers in JSON is this option. It works until a response has a measured
#   double, such as a ratio or a mean: then nothing of the response can be read, only at some moments.
. "$(dirname "$0")/common.sh"

packages json-bigint@1.0.0 lossless-json@4.3.3
program run.mjs <<'JS'
import create from "json-bigint";
import { parse } from "lossless-json";

const parsers = {
  "json-bigint": create().parse,
  "json-bigint, useNativeBigInt": create({ useNativeBigInt: true }).parse,
  "lossless-json": (text) => parse(text),
};
for (const [name, read] of Object.entries(parsers)) {
  for (const number of ["999999999999999", "1000000000000000", "9007199254740993", "0.5", "0.1234567890123456"]) {
    try {
      const { value } = read(`{"height":1,"value":${number}}`);
      console.log(`${name}: ${number} is a ${value.constructor.name}`);
    } catch (error) {
      console.log(`${name}: ${number}: ${error.name}: ${error.message}`);
    }
  }
}
JS
shows node run.mjs <<'SEEN'
json-bigint: 999999999999999 is a Number
json-bigint: 1000000000000000 is a BigNumber
json-bigint: 9007199254740993 is a BigNumber
json-bigint: 0.5 is a Number
json-bigint: 0.1234567890123456 is a BigNumber
json-bigint, useNativeBigInt: 999999999999999 is a Number
json-bigint, useNativeBigInt: 1000000000000000 is a BigInt
json-bigint, useNativeBigInt: 9007199254740993 is a BigInt
json-bigint, useNativeBigInt: 0.5 is a Number
json-bigint, useNativeBigInt: 0.1234567890123456: SyntaxError: Cannot convert 0.1234567890123456 to a BigInt
lossless-json: 999999999999999 is a LosslessNumber
lossless-json: 1000000000000000 is a LosslessNumber
lossless-json: 9007199254740993 is a LosslessNumber
lossless-json: 0.5 is a LosslessNumber
lossless-json: 0.1234567890123456 is a LosslessNumber
SEEN
