/** Senders with keys of small order, for which anyone can forge signatures. */
import { toJson } from "@bufbuild/protobuf";
import test from "ava";
import { TransactionSchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { type TestKey, testKey } from "../helpers/chain/keys.js";
import { ask } from "../helpers/wire/plain-client.js";
import { startMember } from "../helpers/nodes/start-node.js";
import { createPublic, signTransaction } from "../helpers/chain/transactions.js";
import { forge, smallOrderKeys } from "../helpers/chain/weak-keys.js";

test("rejects transactions from keys of small order with 401", async (t) => {
  const { port } = await startMember(t);
  const submit = (key: Pick<TestKey, "publicKey" | "sign">) =>
    ask(port, "/chain/transactions", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({
        transaction: toJson(TransactionSchema, signTransaction(key as TestKey, 1, createPublic("a", "{}"))),
      }),
    });
  for (const publicKey of smallOrderKeys) {
    const { status, text } = await submit({ publicKey, sign: (bytes) => forge(publicKey, bytes) });
    t.is(status, 401, text);
    t.like(JSON.parse(text), { errorCode: "INVALID_SIGNATURE" });
  }
  t.is((await submit(testKey(3))).status, 200);
});
