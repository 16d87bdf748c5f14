import test from "ava";
import { costsOf, createSenderRates } from "../../src/chain/mempool/sender-rates.js";
import { verifyTransaction } from "../../src/chain/transactions/transaction.js";
import { RpcError } from "../../src/rpc/errors.js";
import { testKey } from "../helpers/chain/keys.js";
import { commit, createPublic, rulesOf, signTransaction, signZk } from "../helpers/chain/transactions.js";

const none = { bytes: 0, programs: 0, leaves: 0 };
const one = { bytes: 0, programs: 1, leaves: 0 };

/** Returns the RpcError that a function throws; undefined if it throws none. */
function errorOf(run: () => void): RpcError | undefined {
  try {
    run();
    return undefined;
  } catch (error) {
    if (error instanceof RpcError) {
      return error;
    }
    throw error;
  }
}

test("rates are counted for each sender, and for each source over all its senders", (t) => {
  const rates = createSenderRates({ ...none, programs: 3 });
  for (let i = 0; i < 3; i++) {
    rates.count({ sender: `s${i}`, source: "a" }, one);
  }
  const error = errorOf(() => rates.count({ sender: "s3", source: "a" }, one));
  t.is(error?.reason, "RATE_LIMITED");
  t.regex(error!.message, /^Too many new programs of this address in a minute; try again in \d+ s\.$/);
  t.true(error!.retryAfterS! > 15 && error!.retryAfterS! <= 20);
  rates.count({ sender: "s0", source: "b" }, one);
  rates.count({ sender: "s0", source: "c" }, one);
  t.regex(errorOf(() => rates.count({ sender: "s0", source: "d" }, one))!.message, /of this sender/);
  // A transaction above the rate of its sender is not counted for the address.
  for (let i = 10; i < 13; i++) {
    rates.count({ sender: `s${i}`, source: "d" }, one);
  }
  rates.count({ sender: "s0", source: undefined }, { ...none, leaves: 1 });
});

test("a check counts nothing, 0 disables a limit, and the lowest rate admits the largest transaction", (t) => {
  const rates = createSenderRates({ bytes: 1, programs: 0, leaves: 1 });
  const writer = { sender: "s", source: "a" };
  for (let i = 0; i < 100; i++) {
    rates.check(writer, { bytes: 1_300_000, programs: 1, leaves: 1 });
    rates.count(writer, one);
  }
  rates.count(writer, { ...none, bytes: 1_300_000 });
  t.is(errorOf(() => rates.check(writer, { ...none, bytes: 1_300_000 }))?.reason, "RATE_LIMITED");
});

test("a transaction counts as its bytes, and as a new program or leaf if it creates one", (t) => {
  const create = verifyTransaction(signTransaction(testKey(1), 1, createPublic("a", "{}")), rulesOf());
  t.deepEqual(costsOf(create.body, 100), { bytes: 100, programs: 1, leaves: 0 });
  const leaf = verifyTransaction(signZk(testKey(1), 1, commit(`0x${"1".padStart(64, "0")}`)), rulesOf());
  t.deepEqual(costsOf(leaf.body, 50), { bytes: 50, programs: 0, leaves: 1 });
  const change = {
    case: "setField" as const,
    value: { storageAddress: `stor-${"a".repeat(40)}`, field: "n", value: "1" },
  };
  t.deepEqual(costsOf(verifyTransaction(signTransaction(testKey(1), 1, change), rulesOf()).body, 9), {
    ...none,
    bytes: 9,
  });
});
