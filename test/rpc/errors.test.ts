/** Error reasons: each is fully described in the contract, and comments name no others. */
import test from "ava";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { ReasonSchema } from "../../gen/gatehouse/errors/v1/errors_pb.js";
import { Code } from "../../gen/google/rpc/code_pb.js";
import { commentOf } from "../../src/rpc/describe/comments.js";
import { errorCatalog, RpcError } from "../../src/rpc/errors.js";

test("gives every reason of the contract an error code, a status and a comment", (t) => {
  const reasons = ReasonSchema.values.filter(({ number }) => number !== 0);
  t.deepEqual(
    Object.keys(errorCatalog),
    reasons.map(({ localName }) => localName),
  );
  t.true(reasons.length >= 24);
  const kinds = new Map(Object.entries(errorCatalog));
  for (const { name, localName } of reasons) {
    const { grpcCode, httpStatus, jsonRpcCode = -32_000 } = kinds.get(localName)!;
    t.true(grpcCode !== Code.OK && grpcCode in Code, name);
    t.true(httpStatus >= 400 && httpStatus <= 599, name);
    t.true(jsonRpcCode <= -32_000 && jsonRpcCode >= -32_768, name);
    t.regex(commentOf(`${ReasonSchema.typeName}.${name}`), /^[A-Z].+\.$/s, name);
  }
});

test("does not compile an error whose reason is not in the contract", (t) => {
  t.is(new RpcError("NOT_FOUND", "There is no such thing.").kind, errorCatalog.NOT_FOUND);
  // @ts-expect-error -- the first value says that there is no reason
  t.is(new RpcError("UNSPECIFIED", "There is no such reason.").kind, undefined);
  // @ts-expect-error -- a reason that nobody declared
  t.is(new RpcError("NOT_DECLARED", "There is no such reason.").kind, undefined);
});

/** Returns the files below a directory with this suffix. */
async function textsOf(directory: string, ending: string): Promise<string[]> {
  const paths = (await readdir(directory, { recursive: true })).filter((path) => path.endsWith(ending));
  return await Promise.all(paths.map((path) => readFile(join(directory, path), "utf8")));
}

const wordsOf = (texts: readonly string[]): string[] =>
  texts.flatMap((text) => text.match(/\b[A-Z]+(_[A-Z]+)+\b/g) ?? []);
const isUnknown = (word: string): boolean => !(word in errorCatalog);

test("names only existing reasons in comments of the contract", async (t) => {
  const files = await textsOf("proto/gatehouse", ".proto");
  // Read only comments, in which an empty line ends a paragraph.
  const comments = files.map((text) => text.replaceAll(/^ *(?:\/\/ ?(.*)|.*)$/gm, "$1"));
  const words = wordsOf(comments.flatMap((text) => text.match(/\bErrors: [^]+?\n\n/g) ?? []));
  t.true(words.length >= 40, String(words.length));
  t.deepEqual(words.filter(isUnknown), []);
});

test("names only existing reasons in comments of the source", async (t) => {
  const words = wordsOf(
    (await textsOf("src", ".ts")).flatMap((text) => text.match(/\bRpcError [A-Z_]+(, [A-Z_]+)*/g) ?? []),
  );
  t.true(words.length >= 30, String(words.length));
  t.deepEqual(words.filter(isUnknown), []);
});
