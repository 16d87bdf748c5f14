/** Tests who reads the content of a transaction that is not in a block yet. */
import test from "ava";
import { AccessMode } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import { testKey } from "../helpers/chain/keys.js";
import { post } from "../helpers/chain/submit.js";
import { createPublic, type Operation, signTransaction } from "../helpers/chain/transactions.js";
import { startPendingNode } from "../helpers/nodes/pending-node.js";
import { callerOf } from "../helpers/process/caller.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";

const [sender, reader, stranger] = [testKey(60), testKey(61), testKey(62)];
const readers = { sender, reader, stranger, anonymous: undefined };

const createWith = (programName: string, mode: AccessMode, allowed: readonly string[] = []): Operation => ({
  case: "createProgram",
  value: { programName, data: { data: { case: "json", value: "{}" } }, access: { mode, allowed: [...allowed] } },
});

test("the sender, and readers of the rule that it creates, read a pending transaction", async (t) => {
  const { port } = await startPendingNode(t);
  const { genesisHash: network } = await askJson<{ genesisHash: string }>(port, "/chain/head");
  const cases: readonly (readonly [Operation, readonly (keyof typeof readers)[]])[] = [
    [createPublic("open", "{}"), ["sender", "reader", "stranger", "anonymous"]],
    [createWith("mine", AccessMode.OWNER), ["sender"]],
    [createWith("shared", AccessMode.RESTRICTED, [reader.publicKey]), ["sender", "reader"]],
    [{ case: "createProgram", value: { programName: "without a rule" } }, ["sender"]],
    // Its program is not in a block either.
    [{ case: "setField", value: { storageAddress: `stor-${"1".repeat(40)}`, field: "a", value: "1" } }, ["sender"]],
  ];
  for (const [i, [operation, expected]] of cases.entries()) {
    const transaction = signTransaction(sender, i + 1, operation, { network });
    const hash = sha256(transaction.body);
    t.is((await post(port, transaction)).status, 200);
    for (const [name, key] of Object.entries(readers)) {
      const headers = key === undefined ? {} : callerOf(key).headers();
      const { text } = await ask(port, `/chain/transactions/${hash}?withBody=true`, { headers });
      const { status, body } = JSON.parse(text) as { status: string; body?: { sender: string } };
      t.is(status, "pending");
      t.is(
        body?.sender,
        expected.includes(name as keyof typeof readers) ? sender.publicKey : undefined,
        `${i} ${name}`,
      );
    }
  }
});
