/** Write rates of senders and sources. */
import test from "ava";
import { amountsOf, createRates } from "../../../src/chain/mempool/mempool-admission.js";
import { verifyTransaction } from "../../../src/chain/transactions/transaction.js";
import { testKey } from "../../helpers/chain/keys.js";
import { commit, createPublic, rulesOf, signTransaction, signZk } from "../../helpers/chain/transactions.js";

const { body: newProgram } = verifyTransaction(signTransaction(testKey(1), 1, createPublic("a", "{}")), rulesOf());
const { body: newLeaf } = verifyTransaction(signZk(testKey(1), 1, commit(`0x${"1".padStart(64, "0")}`)), rulesOf());
const change = { storageAddress: `stor-${"a".repeat(40)}`, field: "n", value: "1" };
const { body: newField } = verifyTransaction(
  signTransaction(testKey(1), 1, { case: "setField", value: change }),
  rulesOf(),
);

/** Creates the rates; the function counts a transaction, or only checks it. */
function createCounter(perMinute: Parameters<typeof createRates>[0]) {
  const rates = createRates(perMinute);
  return (sender: string, source: string | undefined, body = newProgram, sizeBytes = 1, isCounted = true): void =>
    rates(amountsOf(body, { sender, source, sizeBytes }), isCounted);
}

test("rates are counted for each sender, and for each source over all its senders", (t) => {
  const count = createCounter({ bytes: 0, programs: 3, leaves: 0 });
  ["s0", "s1", "s2"].forEach((sender) => count(sender, "a"));
  const error = t.throws(() => count("s3", "a"));
  t.like(error, { reason: "RATE_LIMITED" });
  t.regex(error!.message, /^Too many new programs of this address in a minute; try again in (1[6-9]|20) s\.$/);
  count("s0", "b");
  count("s0", "c");
  t.throws(() => count("s0", "d"), { message: /of this sender/ });
  // A transaction above the rate of its sender is not counted for the address.
  ["s10", "s11", "s12"].forEach((sender) => count(sender, "d"));
  count("s0", undefined, newLeaf);
  count("s0", "d", newField);
});

test("a check counts nothing, 0 disables a limit, and the lowest rate admits the largest transaction", (t) => {
  const count = createCounter({ bytes: 1, programs: 0, leaves: 1 });
  for (let i = 0; i < 100; i++) {
    count("s", "a", newLeaf, 1_300_000, false);
    count("s", "a", newProgram, 0);
  }
  count("s", "a", newLeaf, 1_300_000);
  t.throws(() => count("s", "b", newField, 1_300_000, false), { message: /^Too many bytes of this sender/ });
  t.throws(() => count("s", "b", newLeaf, 0), { message: /^Too many new commitments of this sender/ });
  t.throws(() => count("r", "a", newLeaf, 0), { message: /^Too many new commitments of this address/ });
});
