/** Trees of large documents that are grown before they are wanted, in a thread of their own. */
import { create } from "@bufbuild/protobuf";
import test from "ava";
import { type StorageOperation, StorageOperationSchema } from "../../gen/gatehouse/storage/v1/operation_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import { createDocumentThread } from "../../src/node/chain/document-thread.js";
import { createFieldTreeBuilder, buildFieldsHere } from "../../src/storage/changes/field-tree-builder.js";
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

/** What was grown, whatever kind of bytes it came as; short, for it is shown where it is another one. */
function textOf({ fieldsRoot, lastKey, tailHash, pages }: BuiltDocument): string {
  const hashes = [fieldsRoot, lastKey, tailHash].map((bytes) => Buffer.from(bytes).toString("hex"));
  return [...hashes, sha256(pages.join())].join(" ");
}

/** Notes what it is asked for. */
function noting(grow: BuildDocument = buildFieldsHere) {
  const asked: string[] = [];
  return {
    asked,
    grow: (async (at, text) => {
      asked.push(`${at} ${text.length}`);
      return await grow(at, text);
    }) as BuildDocument,
  };
}

test("a large object is begun with when it is expected, once, and nothing else is", async (t) => {
  const { asked, grow } = noting();
  const growing = createFieldTreeBuilder(grow);
  growing.prepare([operationOf("{}"), operationOf(`["${"x".repeat(100_000)}"]`)]);
  t.deepEqual(asked, []);
  growing.prepare([operationOf(large)]);
  t.deepEqual(asked, [`${address} ${large.length}`]);
  t.is(textOf(await growing.build(address, large)), textOf(await buildFieldsHere(address, large)));
  t.is(asked.length, 1);
});

test("a document that became another one is grown as it is", async (t) => {
  const growing = createFieldTreeBuilder(noting().grow);
  growing.prepare([operationOf(large)]);
  const other = documentOf(9_000);
  t.is(textOf(await growing.build(address, other)), textOf(await buildFieldsHere(address, other)));
  t.is(
    textOf(await createFieldTreeBuilder(undefined).build(address, large)),
    textOf(await buildFieldsHere(address, large)),
  );
});

test("where the other thread cannot, it is done here", async (t) => {
  const { asked, grow } = noting(() => Promise.reject(new Error("out of memory")));
  const growing = createFieldTreeBuilder(grow);
  growing.prepare([operationOf(large)]);
  t.is(textOf(await growing.build(address, large)), textOf(await buildFieldsHere(address, large)));
  t.is(asked.length, 1);
});

test("the thread gives what is worked out here", async (t) => {
  const thread = createDocumentThread(256);
  t.teardown(() => thread.stop());
  t.is(textOf(await thread.build(address, large)), textOf(await buildFieldsHere(address, large)));
});
