import { create as createMessage } from "@bufbuild/protobuf";
import test from "ava";
import { StorageOperationSchema } from "../../gen/gatehouse/storage/v1/operation_pb.js";
import { AccessMode, AccessPermission } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import type { Engine } from "../../src/db/queries/dialects.js";
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
  test(`${engine}: fields and items are changed in place, and the other text stays as it was written`, async (t) => {
    const { create, data, change, programs } = await open(t, engine);
    const address = await create('{ "a" : 1.0 , "list":[ 1.0,{"b":[2]} ], "z": "end" }');
    const list = { storageAddress: address, field: "list" };
    const deleteField = (field: string): Operation => ({
      case: "deleteField",
      value: { storageAddress: address, field },
    });
    const steps: readonly (readonly [Operation, string])[] = [
      [set(address, "a", '{"deep":1}'), '{ "a" : {"deep":1} , "list":[ 1.0,{"b":[2]} ], "z": "end" }'],
      [
        { case: "setItem", value: { ...list, index: 1, value: "true" } },
        '{ "a" : {"deep":1} , "list":[ 1.0,true ], "z": "end" }',
      ],
      [
        { case: "appendItem", value: { ...list, value: '"new"' } },
        '{ "a" : {"deep":1} , "list":[ 1.0,true,"new" ], "z": "end" }',
      ],
      [
        { case: "deleteItem", value: { ...list, index: 0 } },
        '{ "a" : {"deep":1} , "list":[ true,"new" ], "z": "end" }',
      ],
      [deleteField("a"), '{ "list":[ true,"new" ], "z": "end" }'],
      [set(address, "__proto__", "1"), '{ "list":[ true,"new" ], "z": "end","__proto__":1 }'],
      [deleteField("__proto__"), '{ "list":[ true,"new" ], "z": "end" }'],
    ];
    for (const [operation, expected] of steps) {
      t.is(await change(alice, operation), undefined);
      t.is(await data(address), expected);
      for (const name of Object.keys(JSON.parse(expected) as object)) {
        const { field } = (await programs.findWithField(address, name))!;
        t.deepEqual(JSON.parse(field!.value), (JSON.parse(expected) as Record<string, unknown>)[name]);
      }
      t.is((await programs.findWithData(address))!.record.sizeBytes, Buffer.byteLength(expected));
    }
  });

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
      [set(address, "a", `"${"x".repeat(1024 * 1024 - 10)}"`), /would be larger than/],
      [set(`stor-${"0".repeat(40)}`, "a", "1"), /no storage program at this address/],
      [set("nowhere", "a", "1"), /storage_address must be stor-/],
    ] as const) {
      t.regex((await change(alice, operation as Operation))!, reason);
    }
    t.is(await data(address), '{"a":1,"list":[1]}');
  });

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

  test(`${engine}: a rule may have a thousand readers`, async (t) => {
    const { create, programs, change } = await open(t, engine);
    const address = await create("{}");
    const allowed = Array.from({ length: 1_000 }, (_, i) => `0x${i.toString(16).padStart(64, "0")}`);
    const access = { mode: AccessMode.RESTRICTED, allowed };
    t.is(await change(alice, { case: "updateAccess", value: { storageAddress: address, access } }), undefined);
    const page = { limit: 10, offset: 0 };
    t.is((await programs.search("p", true, allowed[999], page)).length, 1);
    t.is((await programs.search("p", true, bob.publicKey, page)).length, 0);
  });

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
