#!/usr/bin/env bash
# @zk-kit/eddsa-poseidon cannot be imported by Node.js, although it can be required.
#
# Version: @zk-kit/eddsa-poseidon 1.1.0 with blakejs 1.2.1.
# Behavior: the ES module of the package imports three names of blakejs, a CommonJS package. Node.js finds the names of such
#   packages by reading their text, and stops at the first entry that is not a plain name, so it knows one of the three.
#   Bundlers and require() are not affected, nor is @semaphore-protocol/identity, which contains a copy.
# Seen: the error of import, the exports of require, and a signature that verifies.
# Why it matters: examples that were tried in a bundler fail in a server or a script on the first line. Use createRequire.
. "$(dirname "$0")/common.sh"

packages @zk-kit/eddsa-poseidon@1.1.0 blakejs@1.2.1
program run.mjs <<'JS'
import { createRequire } from "node:module";

try {
  await import("@zk-kit/eddsa-poseidon");
  console.log("import works");
} catch (error) {
  console.log(`import: ${error.name}: ${error.message.split(".")[0]}`);
}
console.log("import finds in blakejs:", Object.keys(await import("blakejs")).filter((name) => /^blake/.test(name)).join(", "));
const eddsa = createRequire(import.meta.url)("@zk-kit/eddsa-poseidon");
const signature = eddsa.signMessage("key", "message");
console.log("require: a signature verifies:", eddsa.verifySignature("message", signature, eddsa.derivePublicKey("key")));
JS
shows node run.mjs <<'SEEN'
import: SyntaxError: Named export 'blake2bFinal' not found
import finds in blakejs: blake2b
require: a signature verifies: true
SEEN
