/** Checks that documents, examples and tools sign identities for one network, not in the older form without one. */
import test from "ava";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";

const searched = ["*.md", "docs", "deploy", "examples", "tools/bench", "src/pages", "client", "src/cli"];
/** Skipped files: binaries, generated code, vectors with rejected identities, and the changelog of old versions. */
const skipped = /\.(png|svg|ico|wasm|binpb)$|^examples\/vectors\/.*\.json$|^CHANGELOG\.md$|_pb2?\b/;

/** Identity and timestamp joined by a colon, in any language. */
const joined = /identity[^\w\n,;]*:[^\w\n,;]*timestamp/gi;
const joinedAfterNetwork = /network[^\w\n,;]*:[^\w\n,;]*$/i;
/** The names of the headers within a few lines. */
const headers = /\bidentity\b(?:(?!\n\n)[^]){0,400}?\btimestamp\b(?:(?!\n\n)[^]){0,400}?\bsignature\b[^]{0,80}/gi;
/** Calls of the functions of the node without a network. */
const unnamed = /\bidentity(?:Message|Text)\([^()]*,\s*(?:undefined|null|"")\s*,?\s*\)/g;

/** Returns the passages of a text that sign an identity without a network. */
function olderForms(text: string): string[] {
  return [
    ...[...text.matchAll(joined)].filter(({ index }) => !joinedAfterNetwork.test(text.slice(0, index))),
    ...[...text.matchAll(headers)].filter(([found]) => !/network/i.test(found)),
    ...text.matchAll(unnamed),
  ].map(([found]) => found);
}

for (const [name, text, isOlder] of [
  ["a digest of two parts in words", "SHA-256 of `<identity>:<timestamp>`", true],
  ["a digest of three parts in words", "SHA-256 of `gatehouse-identity:<network>:<identity>:<timestamp>`", false],
  ["Go, joined", 'sha256.Sum256([]byte(identity + ":" + timestamp))', true],
  ["Go, joined with the network", '"gatehouse-identity:" + network + ":" + identity + ":" + timestamp', false],
  ["Python, a form", 'text = f"{identity}:{timestamp}"', true],
  ["Rust, a form with the network", 'format!("gatehouse-identity:{network}:{identity}:{timestamp}")', false],
  ["headers of curl", "-H 'identity: ed25519:0x00' -H 'timestamp: 1' -H 'signature: 0x00'", true],
  ["headers of curl with the network", "-H 'identity: a' -H 'timestamp: 1' -H 'network: 0x' -H 'signature: 0x'", false],
  ["headers of TypeScript", "return { identity, timestamp, signature: `0x${hex}` };", true],
  ["the node's own text", "sign(null, identityMessage(identity, timestamp, undefined), key)", true],
] as const) {
  test(`${name}: ${isOlder ? "the older form" : "for one network"}`, (t) => {
    t.is(olderForms(text).length > 0, isOlder);
  });
}

test("every signed identity in documents, examples and tools names its network", async (t) => {
  const { stdout } = await promisify(execFile)("git", ["ls-files", "-co", "--exclude-standard", "--", ...searched]);
  const paths = stdout.split("\n").filter((path) => path !== "" && !skipped.test(path));
  const texts = await Promise.all(paths.map(async (path) => [path, await readFile(path, "utf8")] as const));
  t.deepEqual(
    texts.flatMap(([path, text]) => olderForms(text).map((found) => `${path}: ${found}`)),
    [],
  );
  const signing = texts.filter(([, text]) => /gatehouse-identity:/.test(text)).map(([path]) => path);
  for (const language of ["python/signing.py", "go/signing/signing.go", "rust/src/signing.rs", "cpp/signing.h"]) {
    t.true(signing.includes(`examples/${language}`), language);
  }
});
