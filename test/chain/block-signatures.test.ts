/** Verification of the transaction signatures of a block, several at a time. */
import test from "ava";
import { setTimeout as pause } from "node:timers/promises";
import { verifyTransaction, signBlock, verifyBlock } from "../../src/chain/transactions/transaction.js";
import { testKey } from "../helpers/chain/keys.js";
import { anyRoots } from "../helpers/chain/seed.js";
import { createPublic, rulesOf, signTransaction, testNetwork } from "../helpers/chain/transactions.js";

const [authority, alice] = [testKey(1), testKey(2)];

test("stops verifying the signatures of a block at the first invalid one", async (t) => {
  const transactions = Array.from({ length: 300 }, (_, i) => signTransaction(alice, i + 1, createPublic("a", "{}")));
  const header = {
    ...{ number: 1n, previousHash: testNetwork, timestampMs: 1n, proposer: authority.publicKey },
    ...{ genesisHash: testNetwork, ...anyRoots },
  };
  const { signed } = signBlock(
    header,
    transactions.map((one) => verifyTransaction(one, rulesOf())),
    (bytes) => authority.sign(bytes),
  );
  const rules = rulesOf();
  signed.transactions[0]!.signature = new Uint8Array(64);
  let reads = 0;
  for (const one of signed.transactions) {
    const { signature } = one;
    Object.defineProperty(one, "signature", {
      get() {
        reads++;
        return signature;
      },
    });
  }
  await t.throwsAsync(verifyBlock(signed, rules), { message: /not signed by its sender/ });
  await pause(200);
  // Each signature is read once for the size of the block. Some more are read until the first one turns out invalid.
  t.true(reads < 300 + 100, String(reads));
});
