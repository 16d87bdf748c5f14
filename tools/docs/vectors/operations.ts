/** Operations of the transactions in examples/vectors: every operation of the API, and typical pitfalls. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { bn254 } from "@noble/curves/bn254.js";
import type { TransactionBodySchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import type { ProgramDataSchema, StorageOperationSchema } from "../../../gen/gatehouse/storage/v1/operation_pb.js";
import { AccessMode, AccessPermission } from "../../../gen/gatehouse/storage/v1/storage_pb.js";
import type { ZkOperationSchema } from "../../../gen/gatehouse/zk/v1/operation_pb.js";
import { programAddress } from "../../../src/storage/changes/write.js";
import { encodeWords } from "../../../src/zk/groth16.js";
import { alice, bob, carol } from "./keys.js";

/** Operation as an object literal. */
export type Operation = NonNullable<MessageInitShape<typeof TransactionBodySchema>["operation"]>;

export const storage = (
  operation: NonNullable<MessageInitShape<typeof StorageOperationSchema>["operation"]>,
): Operation => ({ case: "storage", value: { operation } });

const zk = (operation: NonNullable<MessageInitShape<typeof ZkOperationSchema>["operation"]>): Operation => ({
  case: "zk",
  value: { operation },
});

export const json = (value: string): MessageInitShape<typeof ProgramDataSchema> => ({ data: { case: "json", value } });
const binary = (hex: string): MessageInitShape<typeof ProgramDataSchema> => ({
  data: { case: "binary", value: new Uint8Array(Buffer.from(hex, "hex")) },
});

/** First address in addresses.json. */
const storageAddress = programAddress(alice.publicKey, "notes", 1n, "");
const field = "tags";

const { x, y } = bn254.G2.Point.BASE.toAffine();
/** Generators of both groups: points that every library accepts, and that prove nothing. */
const proof = { a: encodeWords(1n, 2n), b: encodeWords(x.c1, x.c0, y.c1, y.c0), c: encodeWords(1n, 2n) };
const hash = `0x${"12".repeat(32)}`;

export const operations: Readonly<Record<string, Operation>> = {
  "create a program that anyone reads": storage({
    case: "createProgram",
    value: {
      programName: "notes",
      data: json('{"title": "Hello", "tags": []}'),
      access: { mode: AccessMode.PUBLIC },
    },
  }),
  "create a program that holds nothing, for its owner alone": storage({
    case: "createProgram",
    value: { programName: "empty" },
  }),
  "create a program with everything that one can have": storage({
    case: "createProgram",
    value: {
      programName: "caf\u00e9 \u{1f3f0} \u65e5\u672c\u8a9e",
      salt: "pepper",
      data: json('{ "price": 1.0, "big": 12345678901234567890, "t": "\\u00e9 \u00e9 \u{1f3f0}\\n" }'),
      metadata: '{"version":"1"}',
      access: {
        mode: AccessMode.RESTRICTED,
        allowed: [bob.publicKey],
        blacklisted: [carol.publicKey],
        groups: {
          editors: { members: [bob.publicKey], permissions: [AccessPermission.READ, AccessPermission.WRITE] },
          readers: { members: [carol.publicKey], permissions: [AccessPermission.READ] },
        },
      },
    },
  }),
  "create a program of bytes": storage({
    case: "createProgram",
    value: { programName: "bytes", data: binary("00ff80fe"), access: { mode: AccessMode.OWNER } },
  }),
  "replace a program's document": storage({
    case: "writeProgram",
    value: { storageAddress, data: json("[1, 2.50, null]") },
  }),
  "replace a program's data by no bytes, which is not the same as nothing": storage({
    case: "writeProgram",
    value: { storageAddress, data: binary("") },
  }),
  "replace a program's data by nothing": storage({ case: "writeProgram", value: { storageAddress } }),
  "give a field a value": storage({ case: "setField", value: { storageAddress, field: "title", value: '"Hi"' } }),
  "give the field without a name a value": storage({
    case: "setField",
    value: { storageAddress, field: "", value: "1e3" },
  }),
  "replace the first item of an array: its index is 0, and not written": storage({
    case: "setItem",
    value: { storageAddress, field, index: 0, value: '"first"' },
  }),
  "replace a later item, whose index takes two bytes": storage({
    case: "setItem",
    value: { storageAddress, field, index: 300, value: '{"a": [true, false]}' },
  }),
  "add an item to an array": storage({ case: "appendItem", value: { storageAddress, field, value: '"new"' } }),
  "take a field away": storage({ case: "deleteField", value: { storageAddress, field: "\u00e9t\u00e9" } }),
  "take an item away": storage({ case: "deleteItem", value: { storageAddress, field, index: 1 } }),
  "close a program to all but its owner": storage({
    case: "updateAccess",
    value: { storageAddress, access: { mode: AccessMode.OWNER } },
  }),
  "name who may read": storage({
    case: "updateAccess",
    value: {
      storageAddress,
      access: { mode: AccessMode.RESTRICTED, allowed: [bob.publicKey, carol.publicKey] },
    },
  }),
  "delete a program": storage({ case: "deleteProgram", value: { storageAddress } }),
  "add a commitment": zk({ case: "addCommitment", value: { commitment: `0x${"00".repeat(31)}2a` } }),
  "spend a nullifier as an authority, without a proof": zk({
    case: "spendNullifier",
    value: { nullifierHash: hash },
  }),
  "spend a nullifier with a proof": zk({
    case: "spendNullifier",
    value: { nullifierHash: hash, root: `0x${"21".repeat(32)}`, proof },
  }),
  "let a group write": storage({
    case: "updateAccess",
    value: {
      storageAddress,
      access: {
        mode: AccessMode.PUBLIC,
        groups: { editors: { members: [bob.publicKey], permissions: [AccessPermission.READ, AccessPermission.WRITE] } },
      },
    },
  }),
};
