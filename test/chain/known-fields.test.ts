/** Unknown fields of transactions are found before the transaction is decoded. */
import { toBinary } from "@bufbuild/protobuf";
import test from "ava";
import { TransactionBodySchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { hasUnknownField } from "../../src/chain/transactions/known-fields.js";
import { testKey } from "../helpers/chain/keys.js";
import { createPublic, signTransaction } from "../helpers/chain/transactions.js";
import { fromBinary } from "@bufbuild/protobuf";

/** Field 1,000 with the number 0. */
const unknown = { no: 1_000, wireType: 0, data: Uint8Array.of(0) };

test("finds unknown fields of a transaction, and of messages inside of it", (t) => {
  const { body } = signTransaction(testKey(1), 1, createPublic("p", "{}"));
  t.false(hasUnknownField(TransactionBodySchema, body));
  const outer = fromBinary(TransactionBodySchema, body);
  outer.$unknown = [unknown];
  t.true(hasUnknownField(TransactionBodySchema, toBinary(TransactionBodySchema, outer)));
  const inner = fromBinary(TransactionBodySchema, body);
  (inner.operation.value as { $unknown?: (typeof unknown)[] }).$unknown = [unknown];
  t.true(hasUnknownField(TransactionBodySchema, toBinary(TransactionBodySchema, inner)));
  t.throws(() => hasUnknownField(TransactionBodySchema, body.subarray(0, -1)));
});
