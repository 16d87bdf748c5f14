import { create as createMessage } from "@bufbuild/protobuf";
import test from "ava";
import fc from "fast-check";
import { StorageOperationSchema } from "../../gen/gatehouse/storage/v1/operation_pb.js";
import { AccessMode, AccessPermission } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import type { Engine } from "../../src/db/queries/dialects.js";
import { deleteMember, itemsOf, membersOf, setMember } from "../../src/storage/documents/document.js";
import { checkJson } from "../../src/storage/changes/check-operation.js";
import { createWriteBuffer } from "../../src/db/rows/write-buffer.js";
import { createProgramChanges } from "../../src/storage/changes/program-change-store.js";
import { createProgramStore } from "../../src/storage/stores/program-store.js";
import { executeOperation, programAddress } from "../../src/storage/changes/write.js";
import type { RpcError } from "../../src/rpc/errors.js";
import { createPublic, type Operation, signTransaction } from "../helpers/chain/transactions.js";
import { openChain } from "../helpers/chain/chain.js";
import { type TestKey, testKey } from "../helpers/chain/keys.js";
import { prepareEngines } from "../helpers/databases/databases.js";
import type { Teardown } from "../helpers/nodes/teardown.js";

const engines = await prepareEngines();

const [authority, alice, bob] = [testKey(1), testKey(2), testKey(3)];

async function open(t: Teardown, engine: Engine) {
  const database = await engines.open(t, engine);
  const chain = await openChain(database, [authority]);
  const programs = createProgramStore(database.read);
  let nonce = 0;
  /** Applies an operation in a block. Returns the reason if it was rejected. */
  async function change(key: TestKey, operation: Operation): Promise<string | undefined> {
    const hash = await chain
      .submit(signTransaction(key, ++nonce, operation))
      .catch((error: unknown) => (error as RpcError).message);
    if (!hash.startsWith("0x")) {
      return hash;
    }
    await chain.produceBlock(authority);
    const rejected = await database.mempool.read.first<{ reason: string }>((sql) =>
      sql("rejected_transactions").where({ hash }),
    );
    return rejected?.reason;
  }
  return {
    database,
    programs,
    change,
    create: async (json: string): Promise<string> => {
      const reason = await change(alice, createPublic("p", json));
      if (reason !== undefined) {
        throw new Error(reason);
      }
      return programAddress(alice.publicKey, "p", BigInt(nonce), "");
    },
    data: async (address: string): Promise<string | undefined> => (await programs.findWithData(address))?.data,
  };
}

const set = (storageAddress: string, field: string, value: string): Operation => ({
  case: "setField",
  value: { storageAddress, field, value },
});

for (const engine of engines.names) {
  test(`${engine}: a document is read as it was written`, async (t) => {
    const { create, data } = await open(t, engine);
    for (const text of [
      '{"a": 1.0,"b":12345678901234567890, "c":"\\u0000\\ud800", "ключ":{"x":[ ]}}',
      "[1, 2.50]",
      '"text"',
      "null",
      " {} ",
      '{"__proto__":1,"constructor":2,"":3,"a.b":4,"a\\"b":5}',
      `${"[".repeat(64)}${"]".repeat(64)}`,
      `{"a":"${"x".repeat(1024 * 1024 - 8)}"}`,
    ]) {
      t.is(await data(await create(text)), text);
    }
  });
}

for (const engine of engines.names) {
  test(`${engine}: rejects an invalid document with the reason`, async (t) => {
    const { change } = await open(t, engine);
    for (const [text, reason] of [
      ["{", "The document is not JSON."],
      ["", "The document is not JSON."],
      ["{a:1}", "The document is not JSON."],
      ["NaN", "The document is not JSON."],
      ['{"a":1,"b":2,"a":3}', "The document has an object with duplicate member names."],
      ['{"x":[{"a":1,"\\u0061":2}]}', "The document has an object with duplicate member names."],
      [`${"[".repeat(65)}${"]".repeat(65)}`, "The document must not be nested deeper than 64 levels."],
      [
        `"${"x".repeat(1024 * 1024)}"`,
        "The transaction's storage.create_program.data.json must have at most 1048576 bytes.",
      ],
    ] as const) {
      t.is(await change(alice, createPublic("p", text)), reason);
    }
  });
}

for (const engine of engines.names) {
  test(`${engine}: fields and items are changed in place, and the other text stays as it was written`, async (t) => {
    const { create, data, change, programs } = await open(t, engine);
    const address = await create('{ "a" : 1.0 , "list":[ 1.0,{"b":[2]} ], "z": "end" }');
    const item = (index: number, value: string): Operation => ({
      case: "setItem",
      value: { storageAddress: address, field: "list", index, value },
    });
    const steps: readonly (readonly [Operation, string])[] = [
      [set(address, "a", '{"deep":1}'), '{ "a" : {"deep":1} , "list":[ 1.0,{"b":[2]} ], "z": "end" }'],
      [item(1, "true"), '{ "a" : {"deep":1} , "list":[ 1.0,true ], "z": "end" }'],
      [
        { case: "appendItem", value: { storageAddress: address, field: "list", value: '"new"' } },
        '{ "a" : {"deep":1} , "list":[ 1.0,true,"new" ], "z": "end" }',
      ],
      [
        { case: "deleteItem", value: { storageAddress: address, field: "list", index: 0 } },
        '{ "a" : {"deep":1} , "list":[ true,"new" ], "z": "end" }',
      ],
      [
        { case: "deleteField", value: { storageAddress: address, field: "a" } },
        '{ "list":[ true,"new" ], "z": "end" }',
      ],
      [set(address, "__proto__", "1"), '{ "list":[ true,"new" ], "z": "end","__proto__":1 }'],
      [
        { case: "deleteField", value: { storageAddress: address, field: "__proto__" } },
        '{ "list":[ true,"new" ], "z": "end" }',
      ],
    ];
    for (const [operation, expected] of steps) {
      t.is(await change(alice, operation), undefined);
      t.is(await data(address), expected);
      const names = (await programs.findWithFieldNames(address))!.names;
      t.deepEqual(names, Object.keys(JSON.parse(expected) as object));
      for (const name of names) {
        const { field } = (await programs.findWithField(address, name))!;
        t.deepEqual(JSON.parse(field!.value), (JSON.parse(expected) as Record<string, unknown>)[name]);
      }
      t.is((await programs.findWithData(address))!.record.sizeBytes, Buffer.byteLength(expected));
    }
  });
}

for (const engine of engines.names) {
  test(`${engine}: rejects an invalid change with the reason`, async (t) => {
    const { create, data, change } = await open(t, engine);
    const address = await create('{"a":1,"list":[1]}');
    const array = await create("[1]");
    const field = { storageAddress: address, field: "list" };
    for (const [operation, reason] of [
      [{ case: "setItem", value: { ...field, index: 1, value: "2" } }, /^The array has no item at this index\.$/],
      [{ case: "deleteItem", value: { ...field, index: 7 } }, /^The array has no item at this index\.$/],
      [
        { case: "appendItem", value: { storageAddress: address, field: "a", value: "1" } },
        /^The field is not an array\.$/,
      ],
      [
        { case: "appendItem", value: { storageAddress: address, field: "none", value: "1" } },
        /^The program has no such field\.$/,
      ],
      [
        { case: "deleteField", value: { storageAddress: address, field: "constructor" } },
        /^The program has no such field\.$/,
      ],
      [set(array, "a", "1"), /^The document is not an object; only objects have fields\.$/],
      [set(address, "a", "{"), /The value is not JSON/],
      [set(address, "a", `"${"x".repeat(1024 * 1024 - 10)}"`), /would be larger than/],
      [set(address, "a", `${"[".repeat(64)}${"]".repeat(64)}`), /nested deeper than 64/],
      [set(`stor-${"0".repeat(40)}`, "a", "1"), /no storage program at this address/],
      [set("nowhere", "a", "1"), /storage_address must be stor-/],
      [{ case: undefined }, /is empty; set one of its changes/],
    ] as const) {
      t.regex((await change(alice, operation as Operation))!, reason);
    }
    t.is(await data(address), '{"a":1,"list":[1]}');
  });
}

for (const engine of engines.names) {
  test(`${engine}: the owner and groups with write permission may change a document; only the owner may do the rest`, async (t) => {
    const { create, data, change } = await open(t, engine);
    const address = await create('{"a":1}');
    t.regex((await change(bob, set(address, "a", "2")))!, /may not change/);
    const access = {
      mode: AccessMode.RESTRICTED,
      groups: { team: { members: [bob.publicKey], permissions: [AccessPermission.WRITE] } },
    };
    const update: Operation = { case: "updateAccess", value: { storageAddress: address, access } };
    const remove: Operation = { case: "deleteProgram", value: { storageAddress: address } };
    t.regex((await change(bob, update))!, /Only the owner/);
    t.is(await change(alice, update), undefined);
    t.is(await change(bob, set(address, "a", "2")), undefined);
    t.is(await data(address), '{"a":2}');
    t.regex((await change(bob, remove))!, /Only the owner/);
    t.is(
      await change(alice, {
        case: "updateAccess",
        value: { storageAddress: address, access: { ...access, blacklisted: [bob.publicKey] } },
      }),
      undefined,
    );
    // Bob may neither read nor write now, so the program appears nonexistent to him.
    t.regex((await change(bob, set(address, "a", "3")))!, /no storage program/);
    t.is(await change(alice, remove), undefined);
    t.is(await data(address), undefined);
    t.regex((await change(alice, set(address, "a", "3")))!, /no storage program/);
  });
}

for (const engine of engines.names) {
  test(`${engine}: bytes are stored as base64, and an empty program becomes an object with its first field`, async (t) => {
    const { data, change, create, programs } = await open(t, engine);
    const address = await create("{}");
    await change(alice, {
      case: "writeProgram",
      value: { storageAddress: address, data: { data: { case: "binary", value: new Uint8Array([0, 255]) } } },
    });
    t.is(await data(address), '"AP8="');
    t.like((await programs.findWithData(address))!.record, { encoding: "binary", type: "binary", sizeBytes: 2 });
    t.regex((await change(alice, set(address, "a", "1")))!, /The document is not an object/);
    await change(alice, { case: "writeProgram", value: { storageAddress: address } });
    t.is(await data(address), undefined);
    t.is(await change(alice, set(address, "a", "1")), undefined);
    t.is(await data(address), '{"a":1}');
  });
}

for (const engine of engines.names) {
  test(`${engine}: a document may have thousands of fields, and a rule a thousand readers`, async (t) => {
    const { create, programs, change } = await open(t, engine);
    const names = Array.from({ length: 5_000 }, (_, i) => `f${i}`);
    const address = await create(`{${names.map((name, i) => `"${name}":${i}`).join(",")}}`);
    t.deepEqual((await programs.findWithFieldNames(address))!.names, names);
    const allowed = Array.from({ length: 1_000 }, (_, i) => `0x${i.toString(16).padStart(64, "0")}`);
    const access = { mode: AccessMode.RESTRICTED, allowed };
    t.is(await change(alice, { case: "updateAccess", value: { storageAddress: address, access } }), undefined);
    const page = { limit: 10, offset: 0 };
    t.is((await programs.search("p", true, allowed[999], page)).length, 1);
    t.is((await programs.search("p", true, bob.publicKey, page)).length, 0);
  });
}

for (const engine of engines.names) {
  test(`${engine}: rejects a second program at an address, also after the first was deleted`, async (t) => {
    const database = await engines.open(t, engine);
    const create = createPublic("p", "{}");
    const execute = (operation: Operation): Promise<number> =>
      database.transaction(async (db) => {
        const rows = createWriteBuffer(db);
        const context = { sender: alice.publicKey, nonce: 1n, timeMs: 1, signature: new Uint8Array(64) };
        const message = createMessage(StorageOperationSchema, { operation });
        const cost = await executeOperation(createProgramChanges(rows), message, context);
        await rows.store();
        return cost;
      });
    const storageAddress = programAddress(alice.publicKey, "p", 1n, "");
    const expectTaken = async (): Promise<void> => {
      t.like(await t.throwsAsync(execute(create)), {
        reason: "ALREADY_EXISTS",
        message: "There is or was a storage program at this address.",
      });
    };
    await execute(create);
    await expectTaken();
    await execute({ case: "deleteProgram", value: { storageAddress } });
    await expectTaken();
    t.is(await createProgramStore(database.read).findWithData(storageAddress), undefined);
  });
}

const json = fc.json({ maxDepth: 3 });
const key = fc.string({ maxLength: 6 });
const object = fc.uniqueArray(fc.tuple(key, json), { selector: ([name]) => name, maxLength: 6 }).chain((members) =>
  fc.constantFrom("", " ", "\n  ").map((space) => ({
    text: `${space}{${space}${members.map(([name, value]) => `${JSON.stringify(name)}${space}:${space}${value}`).join(`${space},${space}`)}${space}}${space}`,
    names: members.map(([name]) => name),
  })),
);

test("setMember and deleteMember change any member of any object, and nothing else", (t) => {
  fc.assert(
    fc.property(object, key, json, ({ text, names }, name, value) => {
      const entries = (json: string) =>
        membersOf(json).map((m) => [m.name, json.slice(m.valueStart, m.valueEnd)] as const);
      t.deepEqual(
        entries(text).map(([own]) => own),
        names,
      );
      const after = setMember(text, name, value);
      t.notThrows(() => JSON.parse(after) as unknown);
      const expected = new Map(entries(text)).set(name, value.trim());
      t.deepEqual(new Map(entries(after)), expected);
      const without = deleteMember(after, name)!;
      t.notThrows(() => JSON.parse(without) as unknown);
      expected.delete(name);
      t.deepEqual(new Map(entries(without)), expected);
      t.is(deleteMember(without, name), undefined);
    }),
  );
});

test("itemsOf finds the items of any array, and checkJson finds duplicate names at any depth", (t) => {
  fc.assert(
    fc.property(fc.array(json), (items) => {
      const text = `[ ${items.join(" ,\n")} ]`;
      t.deepEqual(
        itemsOf(text).map(({ start, end }) => text.slice(start, end)),
        items.map((item) => item.trim()),
      );
    }),
  );
  fc.assert(
    fc.property(json, (text) => {
      t.notThrows(() => checkJson(text, { subject: "It" }));
      t.throws(() => checkJson(`[{"k":1,"x":${text},"k":2}]`, { subject: "It" }), {
        message: "It has an object with duplicate member names.",
      });
    }),
  );
});
