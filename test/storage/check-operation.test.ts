import test from "ava";
import { fromBinary } from "@bufbuild/protobuf";
import { AccessControlSchema, AccessMode } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { RpcError } from "../../src/rpc/errors.js";
import { verifyTransaction } from "../../src/chain/transactions/transaction.js";
import { checkAccessControl } from "../../src/storage/programs/access.js";
import { testKey } from "../helpers/chain/keys.js";
import { createPublic, type Operation, rulesOf, signTransaction } from "../helpers/chain/transactions.js";

const storageAddress = `stor-${"1".repeat(40)}`;
const keys = (count: number): string[] => Array.from({ length: count }, (_, i) => `0x${String(i).padStart(64, "0")}`);
const nested = (levels: number): string => `${"[".repeat(levels)}${"]".repeat(levels)}`;

/** Returns the error message for an operation when its transaction is decoded; undefined if it is valid. */
function errorOf(operation: Operation): string | undefined {
  try {
    verifyTransaction(signTransaction(testKey(2), 1, operation), rulesOf());
    return undefined;
  } catch (error) {
    if (error instanceof RpcError && error.reason === "INVALID_REQUEST") {
      return error.message;
    }
    throw error;
  }
}

const named = (programName: string, salt = ""): Operation => ({ case: "createProgram", value: { programName, salt } });
const set = (field: string, value = "1"): Operation => ({ case: "setField", value: { storageAddress, field, value } });
const access = (rule: object): Operation => ({
  case: "updateAccess",
  value: { storageAddress, access: { mode: AccessMode.RESTRICTED, ...rule } },
});
const group = (members: readonly string[]) => ({ members: [...members], permissions: [] });

const longField = "The name of a field must not be longer than 256 bytes.";
const manyKeys = "An access rule must have at most 1000 keys in total.";
const tooDeep = "The document must not be nested deeper than 64 levels.";

test("accepts valid operations at the limits", (t) => {
  for (const operation of [
    named("n".repeat(256), "s".repeat(256)),
    named("a:b"),
    createPublic("p", `{"${"é".repeat(128)}":{"${"x".repeat(300)}":1}}`),
    set("é".repeat(128)),
    set(""),
    set("a", nested(63)),
    set("a", ' {"a":{"a":1}} '),
    { case: "appendItem", value: { storageAddress, field: "a", value: nested(62) } },
    { case: "writeProgram", value: { storageAddress } },
    { case: "deleteProgram", value: { storageAddress } },
    access({ allowed: keys(600), blacklisted: keys(300), groups: { ["g".repeat(256)]: group(keys(100)) } }),
  ] as const) {
    t.is(errorOf(operation as Operation), undefined);
  }
});

test("rejects invalid operations, with messages that do not quote the text", (t) => {
  for (const [operation, message] of [
    [{ case: undefined }, "The storage operation is empty; set one of its changes."],
    [named("a", "7:x"), "The transaction's storage.create_program.salt must be text without NUL and without a colon."],
    [createPublic("p", `{"${"é".repeat(128)}x":1}`), longField],
    [createPublic("p", `{"${"\\u00e9".repeat(129)}":1}`), longField],
    [set("x".repeat(257)), "The transaction's storage.set_field.field must have at most 256 bytes."],
    [set("a", '{"x":1,"\\u0078":2}'), "The value has an object with duplicate member names."],
    [set("a", nested(64)), tooDeep],
    [set("a", "["), "The value is not JSON."],
    [set("a", '"\\"'), "The value is not JSON."],
    [set("a", '{"\\x":1}'), "The value is not JSON."],
    [{ case: "setItem", value: { storageAddress, field: "a", index: 0, value: nested(63) } }, tooDeep],
    [{ case: "appendItem", value: { storageAddress, field: "a", value: "1," } }, "The item is not JSON."],
    [{ case: "createProgram", value: { programName: "p", metadata: "[]" } }, "The metadata must be a JSON object."],
    [access({ mode: AccessMode.UNSPECIFIED }), "The access mode must be public, owner or restricted."],
    [access({ allowed: keys(600), groups: { a: group(keys(401)) } }), manyKeys],
    [access({ allowed: keys(500), blacklisted: keys(501) }), manyKeys],
  ] as const) {
    t.is(errorOf(operation as Operation), message);
  }
});

test("rejects a group named __proto__, which would set the prototype of the groups", (t) => {
  // The Protobuf library cannot encode such a group: field 4, with its key in field 1 and an empty group in field 2.
  const name = Buffer.from("__proto__");
  const bytes = Buffer.concat([
    Buffer.from([0x08, AccessMode.RESTRICTED, 0x22, name.length + 4, 0x0a, name.length]),
    name,
  ]);
  const rule = fromBinary(AccessControlSchema, Buffer.concat([bytes, Buffer.from([0x12, 0])]));
  t.throws(() => checkAccessControl(rule), { message: "A group of an access rule must not be named __proto__." });
});
