/** Documents that are stored in parts: all reads and proofs equal those of the full text, and changes cost less. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { runWithoutYielding } from "../../src/base/async/yielding.js";
import type { ObjectStateSchema } from "../../gen/gatehouse/state/v1/state_pb.js";
import test, { type ExecutionContext } from "ava";
import fc from "fast-check";
import { StorageOperationSchema } from "../../gen/gatehouse/storage/v1/operation_pb.js";
import type { Database } from "../../src/db/queries/database.js";
import {
  appendItem,
  deleteItem,
  deleteMember,
  itemsOf,
  membersOf,
  setItem,
  setMember,
  sliceItem,
} from "../../src/storage/documents/document.js";
import { typeOfJson } from "../../src/storage/documents/json-text.js";
import { createWriteBuffer } from "../../src/db/rows/write-buffer.js";
import { createProgramChanges } from "../../src/storage/changes/program-change-store.js";
import { createProgramStore } from "../../src/storage/stores/program-store.js";
import { createProgramProofs } from "../../src/storage/stores/program-proof-store.js";
import { fieldKey, fieldsOfObject, hashDocument, partsOf } from "../../src/storage/programs/program-state.js";
import { selectPrograms } from "../../src/storage/stores/program-state-store.js";
import type { ProgramRow } from "../../src/storage/programs/stored-program.js";
import { buildTree } from "../../src/tree/change.js";
import { stateHashes, treeHashes } from "../../src/tree/node-hashes.js";
import { leadsTo, type Path } from "../../src/tree/path.js";
import type { FieldParts } from "../../src/tree/state-format.js";
import { executeOperation, programAddress } from "../../src/storage/changes/write.js";
import { prepareEngines } from "../helpers/databases/databases.js";
import { fillRowHashes } from "../helpers/databases/fill-row-hashes.js";
import { createPublic, type Operation } from "../helpers/chain/transactions.js";

const engines = await prepareEngines();

const sender = `0x${"a".repeat(64)}`;

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

/** Opens programs of one sender, which are changed without blocks. */
function openPrograms(database: Database) {
  let nonce = 0n;
  const leaves = new Map<string, Uint8Array | undefined>();
  /** Executes an operation and returns its cost. */
  const execute = (operation: Operation): Promise<number> =>
    database.transaction(async (db) => {
      const rows = createWriteBuffer(db);
      const changes = createProgramChanges(rows);
      const context = { sender, nonce, timeMs: 1, signature: new Uint8Array(64) };
      const cost = await rows.savepoint(() =>
        executeOperation(changes, create(StorageOperationSchema, { operation }), context),
      );
      await rows.store();
      for (const { key, valueHash } of await changes.leaves()) {
        leaves.set(hex(key), valueHash);
      }
      return cost;
    });
  return {
    database,
    execute,
    /** Returns the value hash of a program's leaf after its last change. */
    leafOf: (address: string) => leaves.get(hex(stateHashes.programKey(address))),
    programs: createProgramStore(database.read),
    make: async (json: string) => {
      nonce++;
      const cost = await execute(createPublic("p", json));
      return { address: programAddress(sender, "p", nonce, ""), cost };
    },
    isInParts: async (address: string): Promise<boolean> => {
      const row = await database.read.first<{ in_parts: boolean | number }>((sql) =>
        sql("programs").where({ address }).select("in_parts"),
      );
      return Boolean(row!.in_parts);
    },
    /** Counts the rows of a program in a table. */
    rowsOf: async (address: string, table: string): Promise<number> => {
      const row = await database.read.first<{ count: number }>((sql) =>
        sql(table)
          .where(table === "tree_pages" ? { tree: address } : { address })
          .count({ count: "*" }),
      );
      return row!.count;
    },
  };
}

const space = fc.constantFrom("", "", "", " ", "\n\t ", "   ");
const scalar = fc.oneof(
  fc.constantFrom("1", "1.0", "null", "true", '"a,]}\\\\\\""', "12345678901234567890", "{}", "[ ]", '"\\u0000\\ud800"'),
  fc.json({ maxDepth: 2 }),
  fc.integer({ min: 0, max: 3_000 }).map((length) => `"${"é".repeat(length)}"`),
);
/** Arrays that mostly repeat one item, with varying white space, item lengths and counts. */
const array = fc
  .record({
    item: scalar,
    around: space,
    between: space,
    count: fc.oneof(fc.integer({ min: 0, max: 8 }), fc.integer({ min: 0, max: 600 })),
    other: scalar,
  })
  .map(({ item, around, between, count, other }) => {
    const items = Array.from({ length: Math.min(count, Math.ceil(40_000 / item.length)) }, (_, i) =>
      i % 7 === 0 ? other : item,
    );
    return `[${around}${items.join(`${between},${around}`)}${between}]`;
  });
const value = fc.oneof(
  { weight: 4, arbitrary: scalar },
  { weight: 3, arbitrary: array },
  { weight: 1, arbitrary: fc.integer({ min: 6_000, max: 20_000 }).map((length) => `"${"x".repeat(length)}"`) },
  { weight: 1, arbitrary: array.map((inner) => `{"in":${inner}}`) },
);
const padded = (inner: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.tuple(space, inner, space).map((parts) => parts.join(""));
const name = fc.oneof(
  fc.constantFrom("", "__proto__", "constructor", "a", "b", 'q"\\', "\0", "ключ", "\ud800"),
  fc.string({ maxLength: 8 }),
);
/** Encodes a name as JSON, optionally with every character escaped. */
const encodeName = (text: string, isEscaped: boolean): string =>
  isEscaped
    ? `"${Array.from({ length: text.length }, (_, i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, "0")}`).join("")}"`
    : JSON.stringify(text);
const membersWith = (values: fc.Arbitrary<string>) =>
  fc.uniqueArray(fc.record({ name, value: padded(values), isEscaped: fc.boolean(), around: space }), {
    selector: (member) => member.name,
    maxLength: 10,
  });
const document = fc.tuple(fc.oneof(membersWith(scalar), membersWith(value)), space).map(([members, around]) => {
  const texts = members.map(
    (member) => `${member.around}${encodeName(member.name, member.isEscaped)}${around}:${member.value}`,
  );
  return `${around}{${texts.join(",")}${around}}${around}`;
});

/** Change of a document. Fractions below 1 select the field, and the item in it. */
const change = fc.record({
  kind: fc.constantFrom(
    "set",
    "set",
    "new",
    "delete",
    "append",
    "append",
    "setItem",
    "setItem",
    "deleteItem",
    "deleteItem",
  ),
  field: fc.double({ min: 0, max: 0.999, noNaN: true }),
  at: fc.oneof(fc.constantFrom(0, 0.9999999), fc.double({ min: 0, max: 0.999, noNaN: true })),
  name,
  value: padded(value),
  item: padded(fc.oneof({ weight: 4, arbitrary: scalar }, { weight: 1, arbitrary: array })),
});
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never;

/** Returns the operation of a change, and the expected text; undefined if the document has no such field or item. */
function plan(text: string, storageAddress: string, { kind, field, at, name: newName, value: json, item }: Change) {
  const members = membersOf(text);
  const arrays = members.filter(({ valueStart }) => text[valueStart] === "[");
  const pick = <T>(list: readonly T[]): T | undefined => list[Math.floor(field * list.length)];
  if (kind === "new") {
    const set: Operation = { case: "setField", value: { storageAddress, field: newName, value: json } };
    return { operation: set, after: setMember(text, newName, json) };
  }
  const member = pick(kind === "set" || kind === "delete" ? members : arrays);
  if (member === undefined) {
    return undefined;
  }
  const named = { storageAddress, field: member.name };
  if (kind === "set") {
    const set: Operation = { case: "setField", value: { ...named, value: json } };
    return { operation: set, after: setMember(text, member.name, json) };
  }
  if (kind === "delete") {
    return { operation: { case: "deleteField", value: named } as Operation, after: deleteMember(text, member.name)! };
  }
  const old = text.slice(member.valueStart, member.valueEnd);
  const items = itemsOf(old);
  const after = (changed: string): string => text.slice(0, member.valueStart) + changed + text.slice(member.valueEnd);
  if (kind === "append") {
    const append: Operation = { case: "appendItem", value: { ...named, value: item } };
    return { operation: append, after: after(appendItem(old, items, item)) };
  }
  if (items.length === 0) {
    return undefined;
  }
  const index = Math.floor(at * items.length);
  return kind === "setItem"
    ? {
        operation: { case: "setItem", value: { ...named, index, value: item } } as Operation,
        after: after(setItem(old, items, index, item)),
      }
    : {
        operation: { case: "deleteItem", value: { ...named, index } } as Operation,
        after: after(deleteItem(old, items, index)),
      };
}

type Stored = ReturnType<typeof openPrograms>;

/** Checks every read of a program against the expected text of its document. */
async function checkReads(t: ExecutionContext, { programs }: Stored, address: string, text: string): Promise<void> {
  const { record, data } = (await programs.findWithData(address))!;
  t.true(data === text, "the full text");
  t.is(record.sizeBytes, Buffer.byteLength(text));
  t.is(record.type, "object");
  const members = membersOf(text);
  for (const member of members) {
    const own = text.slice(member.valueStart, member.valueEnd);
    const { field } = (await programs.findWithField(address, member.name))!;
    t.true(field?.value === own, member.name);
    t.is(field!.type, typeOfJson(own));
    const items = field!.type === "array" ? itemsOf(own) : [];
    for (const index of new Set([0, Math.floor(items.length / 2), items.length - 1].filter((at) => at >= 0))) {
      const { chunk, value: portion } = (await programs.findWithItem(address, member.name, index))!.field!;
      t.is(chunk?.arrayItems ?? items.length, items.length);
      const item = items[index];
      t.is(item && sliceItem(portion, index - (chunk?.firstItem ?? 0)), item && own.slice(item.start, item.end));
    }
  }
  t.is((await programs.findWithField(address, "not there"))!.field, undefined);
}

/** Checks the leaf of a program and its proofs against those that are computed from the full text. */
async function checkState(
  t: ExecutionContext,
  { database, leafOf }: Stored,
  address: string,
  text: string,
): Promise<void> {
  const [row] = await database.read.rows<ProgramRow>((sql) => selectPrograms(sql).where("p.address", address));
  const { leaves, lastKey, tailHash } = runWithoutYielding(fieldsOfObject(text));
  const fieldsRoot = runWithoutYielding(buildTree(leaves)).root;
  const documentHash = hashDocument({ kind: "object", fieldsRoot, lastKey, tailHash });
  const valueHash = stateHashes.program({ ...partsOf(row!), documentHash });
  t.is(hex(leafOf(address)!), hex(valueHash), "the leaf");
  const fields = ["not there", ...membersOf(text).map((member) => member.name)].slice(0, 4);
  const wanted = { fields, withDocument: true, withMetadata: false };
  const proof = (await createProgramProofs(database.read)(address, wanted))!;
  t.is(hex(proof.valueHash), hex(valueHash));
  t.true(proof.state.data === text);
  const object = proof.state.document!.value as MessageInitShape<typeof ObjectStateSchema>;
  for (const { name: field, path, field: state } of object.fields!) {
    const key = fieldKey(field!);
    const value = state && stateHashes.field(state as FieldParts);
    t.is(state === undefined, field === "not there");
    t.true(leadsTo(fieldsRoot, treeHashes, key, value, path as Path), field);
  }
}

test("random changes produce the same text as changes of the full text, at the same cost on every engine", async (t) => {
  const stored = await Promise.all(engines.names.map(async (engine) => openPrograms(await engines.open(t, engine))));
  const [first] = stored;
  const counts = { text: 0, parts: 0, chunks: 0, becameParts: 0, becameText: 0 };
  await fc.assert(
    fc.asyncProperty(document, fc.array(change, { maxLength: 30, size: "max" }), async (written, changes) => {
      let text = written;
      let wasInParts: boolean | undefined;
      const created = await Promise.all(stored.map((programs) => programs.make(text)));
      const { address } = created[0]!;
      for (const step of [undefined, ...changes]) {
        const planned = step && plan(text, address, step);
        if (step !== undefined && planned === undefined) {
          continue;
        }
        if (planned !== undefined) {
          const costs = await Promise.all(stored.map((programs) => programs.execute(planned.operation)));
          t.is(new Set(costs).size, 1, `costs: ${costs.join()}`);
          text = planned.after;
        }
        await Promise.all(stored.map((programs) => checkReads(t, programs, address, text)));
        await Promise.all(stored.map((programs) => checkState(t, programs, address, text)));
        const inParts = await first!.isInParts(address);
        counts[inParts ? "parts" : "text"]++;
        counts.chunks += (await first!.rowsOf(address, "program_chunks")) > 0 ? 1 : 0;
        counts.becameParts += inParts && wasInParts === false ? 1 : 0;
        counts.becameText += !inParts && wasInParts === true ? 1 : 0;
        wasInParts = inParts;
      }
      await Promise.all(
        stored.map(async (programs) => {
          await programs.execute({ case: "deleteProgram", value: { storageAddress: address } });
          for (const table of ["program_documents", "program_fields", "program_chunks", "tree_pages"]) {
            t.is(await programs.rowsOf(address, table), 0);
          }
        }),
      );
    }),
    // Shrinking a failing example would exceed the time limit of the test.
    { numRuns: 30, endOnFailure: true },
  );
  t.log(JSON.stringify(counts));
  t.true(
    Object.values(counts).every((count) => count > 0),
    "every form of storage and conversion occurred",
  );
});

for (const engine of engines.names) {
  test(`${engine}: a change of a large document costs only the fields and chunks that it reads or changes`, async (t) => {
    const { make, execute, programs, rowsOf } = openPrograms(await engines.open(t, engine));
    const list = `[${"1,".repeat(499_999)}1]`;
    const { address: storageAddress, cost } = await make(`{"list":${list},"x":1}`);
    t.true(cost >= list.length && cost < 2 * list.length, `${cost}`);
    const inList = { storageAddress, field: "list" };
    // For the state tree, the full list is hashed after each change.
    const hashed = Math.ceil((list.length + 8_000) / 8);
    for (let i = 0; i < 300; i++) {
      const appended = await execute({ case: "appendItem", value: { ...inList, value: "7" } });
      t.true(appended < hashed + 16 * 1024, `an append costs ${appended}`);
    }
    t.is((await programs.findWithItem(storageAddress, "list", 500_299))!.field!.chunk!.arrayItems, 500_300);
    const portion = (await programs.findWithItem(storageAddress, "list", 250_000))!.field!;
    t.true(portion.value.length < 20_000, "the read of an item returns more than its chunk");
    for (const [operation, maxCost] of [
      [{ case: "setItem", value: { ...inList, index: 250_000, value: '"new"' } }, hashed + 64 * 1024],
      [{ case: "deleteItem", value: { ...inList, index: 250_000 } }, hashed + 64 * 1024],
      [{ case: "setField", value: { storageAddress, field: "x", value: '"new"' } }, 2 * 1024],
      [{ case: "setField", value: { storageAddress, field: "y", value: '"new"' } }, 2 * 1024],
      [{ case: "deleteField", value: { storageAddress, field: "x" } }, 2 * 1024],
    ] as const) {
      const changeCost = await execute(operation as Operation);
      t.true(changeCost < maxCost, `${operation.case} costs ${changeCost}`);
    }
    for (const [operation, reason] of [
      [{ case: "setItem", value: { ...inList, index: 500_299, value: "1" } }, "INDEX_OUT_OF_BOUNDS"],
      [{ case: "deleteItem", value: { ...inList, index: 4_294_967_295 } }, "INDEX_OUT_OF_BOUNDS"],
      [{ case: "appendItem", value: { storageAddress, field: "y", value: "1" } }, "INVALID_FIELD_TYPE"],
      [{ case: "deleteField", value: { storageAddress, field: "x" } }, "FIELD_NOT_FOUND"],
      [
        { case: "setField", value: { storageAddress, field: "y", value: `"${"x".repeat(100_000)}"` } },
        "INVALID_REQUEST",
      ],
      [
        { case: "setField", value: { storageAddress, field: "z", value: `"${"x".repeat(100_000)}"` } },
        "INVALID_REQUEST",
      ],
      [{ case: "appendItem", value: { ...inList, value: `"${"x".repeat(100_000)}"` } }, "INVALID_REQUEST"],
      [{ case: "setItem", value: { ...inList, index: 9, value: `"${"x".repeat(100_000)}"` } }, "INVALID_REQUEST"],
    ] as const) {
      t.like(await t.throwsAsync(execute(operation as Operation)), { reason });
    }
    // A change of the full list costs the full list.
    t.true((await execute({ case: "deleteField", value: inList })) > list.length);
    t.is(await rowsOf(storageAddress, "program_chunks"), 0);
    t.is((await programs.findWithData(storageAddress))!.data, '{"y":"new"}');

    const members = Array.from({ length: 20_000 }, (_, i) => `"k${i}":${i}`);
    const many = await make(`{${members.join(",")}}`);
    t.true(many.cost > 20_000 * 128, `${many.cost}`);
    const target = { storageAddress: many.address, field: "k7", value: "true" };
    t.true((await execute({ case: "setField", value: target })) < 2 * 1024);
    t.true((await execute({ case: "deleteProgram", value: { storageAddress: many.address } })) > 20_000 * 128);
  });

  test(`${engine}: if no position is left between two chunks, all chunks of the field are stored again`, async (t) => {
    const database = await engines.open(t, engine);
    const { make, execute, programs } = openPrograms(database);
    const { address: storageAddress } = await make(`{"list":[${"1,".repeat(29_999)}1 ]}`);
    await database.write.run((sql) => sql.raw("UPDATE program_chunks SET position = position / 1048576"));
    await fillRowHashes(database.write);
    const value = JSON.stringify("x".repeat(9_000));
    for (const index of [10, 20_000, 29_999, 10_000]) {
      await execute({ case: "setItem", value: { storageAddress, field: "list", index, value } });
    }
    const expected: unknown[] = Array.from({ length: 30_000 }, () => 1);
    for (const index of [10, 20_000, 29_999, 10_000]) {
      expected[index] = "x".repeat(9_000);
    }
    const { data } = (await programs.findWithData(storageAddress))!;
    t.true(data === `{"list":${JSON.stringify(expected).slice(0, -1)} ]}`);
    for (const index of [9, 10, 11, 20_000, 29_999]) {
      const { value: text, chunk } = (await programs.findWithItem(storageAddress, "list", index))!.field!;
      t.is(sliceItem(text, index - chunk!.firstItem), JSON.stringify(expected[index]));
    }
  });
}
