/** Field trees of large documents, which another thread starts to build before they are needed. */
import { create } from "@bufbuild/protobuf";
import test from "ava";
import { type StorageOperation, StorageOperationSchema } from "../../gen/gatehouse/storage/v1/operation_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import { createDocumentThread } from "../../src/node/chain/threads.js";
import { createFieldTreeBuilder } from "../../src/storage/changes/field-tree-builder.js";
import { buildFieldsHere } from "../../src/storage/programs/program-state.js";
import type { BuildDocument, BuiltDocument } from "../../src/storage/programs/programs.js";
import { createPublic } from "../helpers/chain/transactions.js";
import { testKey } from "../helpers/chain/keys.js";
import { programAddress } from "../../src/storage/changes/write.js";

const by = { sender: testKey(3).publicKey, nonce: 1n };
const address = programAddress(by.sender, "a", by.nonce, "");
const documentOf = (members: number): string =>
  `{ ${Array.from({ length: members }, (_, i) => `"k${i}": ${i}`).join(", ")} }`;
const large = documentOf(10_000);

function operationOf(json: string): { by: typeof by; operation: StorageOperation } {
  return { by, operation: create(StorageOperationSchema, { operation: createPublic("a", json) }) };
}

/** Converts a built tree to a short text, for comparisons. */
function textOf({ fieldsRoot, lastKey, tailHash, pages }: BuiltDocument): string {
  const hashes = [fieldsRoot, lastKey, tailHash].map((bytes) => Buffer.from(bytes).toString("hex"));
  return [...hashes, sha256(pages.join())].join(" ");
}

/** Wraps a builder, and records its calls. */
function recordCalls(build: BuildDocument = buildFieldsHere) {
  const calls: string[] = [];
  return {
    calls,
    recorded: (async (address, text) => {
      calls.push(`${address} ${text.length}`);
      return await build(address, text);
    }) as BuildDocument,
  };
}

test("starts to build only large objects, and each only once", async (t) => {
  const { calls, recorded } = recordCalls();
  const builder = createFieldTreeBuilder(recorded);
  builder.prepare([operationOf("{}"), operationOf(`["${"x".repeat(100_000)}"]`)]);
  t.deepEqual(calls, []);
  builder.prepare([operationOf(large)]);
  t.deepEqual(calls, [`${address} ${large.length}`]);
  t.is(textOf(await builder.build(address, large)), textOf(await buildFieldsHere(address, large)));
  t.is(calls.length, 1);
});

test("builds the tree of the current text if the document was rewritten", async (t) => {
  const builder = createFieldTreeBuilder(recordCalls().recorded);
  builder.prepare([operationOf(large)]);
  const other = documentOf(9_000);
  t.is(textOf(await builder.build(address, other)), textOf(await buildFieldsHere(address, other)));
  t.is(
    textOf(await createFieldTreeBuilder(undefined).build(address, large)),
    textOf(await buildFieldsHere(address, large)),
  );
});

test("builds on the calling thread if the other thread fails", async (t) => {
  const { calls, recorded } = recordCalls(() => Promise.reject(new Error("out of memory")));
  const builder = createFieldTreeBuilder(recorded);
  builder.prepare([operationOf(large)]);
  t.is(textOf(await builder.build(address, large)), textOf(await buildFieldsHere(address, large)));
  t.is(calls.length, 1);
});

test("the document thread builds the same tree as the calling thread", async (t) => {
  const thread = createDocumentThread(256);
  t.teardown(() => thread.stop());
  t.is(textOf(await thread.build(address, large)), textOf(await buildFieldsHere(address, large)));
});
