import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import test from "ava";
import { TransactionBodySchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { compileBounds } from "../../src/chain/transactions/bounds.js";

const check = compileBounds(TransactionBodySchema, "transaction");

/** Returns the message of the error of an invalid body; undefined if it is valid. */
function find(message: Parameters<typeof check>[0]): string | undefined {
  try {
    check(message);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

const key = `0x${"a".repeat(64)}`;
const address = `stor-${"0".repeat(40)}`;
const body = { sender: key, network: key, nonce: 1n };

type Body = MessageInitShape<typeof TransactionBodySchema>;
type Storage = Extract<NonNullable<Body["operation"]>, { case: "storage" }>["value"];
const storage = (operation: Storage["operation"]): Body => ({
  ...body,
  operation: { case: "storage", value: { operation } },
});
const withName = (programName: string, salt = ""): Body =>
  storage({ case: "createProgram", value: { programName, salt } });
const withAccess = (access: object): Body =>
  storage({ case: "updateAccess", value: { storageAddress: address, access } });
const withField = (name: string): Body =>
  storage({ case: "setField", value: { storageAddress: address, field: name, value: "1" } });

const cases: readonly (readonly [label: string, body: Body, error: string | undefined])[] = [
  ["valid", withName("a"), undefined],
  ["an invalid sender", { ...body, sender: "0x12" }, "sender must be 0x and 64 lower-case hex digits"],
  ["a sender in upper case", { ...body, sender: key.toUpperCase() }, "sender must be 0x and 64 lower-case hex digits"],
  ["a line break behind a key", { ...body, sender: `${key}\n` }, "sender must be 0x and 64 lower-case hex digits"],
  ["no network", { ...body, network: "" }, "network must be 0x and 64 lower-case hex digits"],
  ["a nonce of 2^53", { ...body, nonce: 2n ** 53n }, "nonce must be a whole number from 0 to 9007199254740991"],
  [
    "a time before 1970",
    { ...body, timestampMs: -1n },
    "timestamp_ms must be a whole number from 0 to 9007199254740991",
  ],
  ["no name", withName(""), "storage.create_program.program_name must have 1 to 1024 bytes"],
  ["the longest name", withName("ü".repeat(512)), undefined],
  ["a longer name", withName("ü".repeat(513)), "storage.create_program.program_name must have 1 to 1024 bytes"],
  ["NUL in a name", withName("a\0"), "storage.create_program.program_name must be text without NUL"],
  ["a colon in a name", withName("a:5"), undefined],
  [
    "a colon in a salt",
    withName("a", "7:x"),
    "storage.create_program.salt must be text without NUL and without a colon",
  ],
  ["a line break in a salt", withName("a", "a\nb"), undefined],
  ["an empty field", withField(""), undefined],
  ["the longest field", withField("f".repeat(256)), undefined],
  ["a longer field", withField("f".repeat(257)), "storage.set_field.field must have at most 256 bytes"],
  ["a field of 6,000 bytes", withField("f".repeat(6_000)), "storage.set_field.field must have at most 256 bytes"],
  [
    "an invalid address",
    storage({ case: "deleteProgram", value: { storageAddress: "nowhere" } }),
    "storage.delete_program.storage_address must be stor- and 40 lower-case hex digits",
  ],
  [
    "an invalid key in a rule",
    withAccess({ mode: 1, allowed: [key, "x"] }),
    "storage.update_access.access.allowed must be 0x and 64 lower-case hex digits",
  ],
  [
    "too many keys in a list",
    withAccess({ mode: 1, allowed: Array.from({ length: 1_001 }, () => key) }),
    "storage.update_access.access.allowed must have at most 1000 items",
  ],
  [
    "too many groups",
    withAccess({ mode: 1, groups: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`g${i}`, {}])) }),
    "storage.update_access.access.groups must have at most 64 items",
  ],
  [
    "a group with a long name",
    withAccess({ mode: 1, groups: { ["g".repeat(257)]: {} } }),
    "storage.update_access.access.groups must have at most 256 bytes",
  ],
  [
    "an invalid member",
    withAccess({ mode: 1, groups: { g: { members: ["x"] } } }),
    "storage.update_access.access.groups.members must be 0x and 64 lower-case hex digits",
  ],
  ["an unknown mode", withAccess({ mode: 9 }), "storage.update_access.access.mode must be one of"],
  [
    "a point that is too long",
    {
      ...body,
      operation: {
        case: "zk",
        value: {
          operation: { case: "spendNullifier", value: { nullifierHash: key, proof: { a: new Uint8Array(65) } } },
        },
      },
    },
    "zk.spend_nullifier.proof.a must have at most 64 bytes",
  ],
];

for (const [label, fields, error] of cases) {
  test(`limits of a transaction: ${label}`, (t) => {
    const found = find(create(TransactionBodySchema, fields));
    if (error === undefined) {
      t.is(found, undefined);
    } else {
      t.true(found?.startsWith(`The transaction's ${error}`), found);
    }
  });
}

test("rejects unknown fields at any depth", (t) => {
  const extra = new BinaryWriter().tag(99, WireType.LengthDelimited).string("more").finish();
  const outer = fromBinary(
    TransactionBodySchema,
    Buffer.concat([toBinary(TransactionBodySchema, create(TransactionBodySchema, withName("a"))), extra]),
  );
  t.is(find(outer), "The transaction holds a field that this node does not know.");
  const inner = create(TransactionBodySchema, withName("a"));
  if (inner.operation.case === "storage") {
    inner.operation.value.$unknown = [{ no: 99, wireType: WireType.Varint, data: new Uint8Array([1]) }];
  }
  t.is(find(inner), "The transaction's storage holds a field that this node does not know.");
});
