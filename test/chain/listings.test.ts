/** Pages of transactions of which the caller may read few: the scan is limited, and positions of others stay hidden. */
import test from "ava";
import { latestPosition, readTransactionPage } from "../../src/chain/blocks/lists.js";
import type { ListedTransaction, TransactionEntry, TransactionPosition } from "../../src/chain/blocks/listing-store.js";
import { RpcError } from "../../src/rpc/errors.js";

/** Simulates a long list of transactions, one in each block. The caller may read only those in these blocks. */
function listOf(count: number, readable: ReadonlySet<number>) {
  let scanned = 0;
  const read = (before: TransactionPosition, pageSize: number) =>
    readTransactionPage({
      store: {
        transactionEntries(_, { blockNumber }, limit) {
          scanned += limit;
          const first = Math.min(count, Number(blockNumber) - 1);
          const numbers = Array.from({ length: Math.min(limit, first) }, (__, i) => first - i);
          return Promise.resolve(
            numbers.map((number): TransactionEntry => {
              return { blockNumber: BigInt(number), position: 0, bytes: 100, program: "a program" };
            }),
          );
        },
        listedTransactions: (positions) => Promise.resolve(positions as ListedTransaction[]),
      },
      filter: { sender: "alice" },
      ...{ before, pageSize, maxBytes: 1_000_000 },
      readableOf: (entries) => Promise.resolve(entries.filter(({ blockNumber }) => readable.has(Number(blockNumber)))),
      signal: new AbortController().signal,
    });
  return { read, scanned: () => scanned };
}

test("the scan for a page ends with an error after 10,000 unreadable transactions", async (t) => {
  const { read, scanned } = listOf(1_000_000, new Set([3]));
  const failure = await t.throwsAsync(read(latestPosition, 50), { instanceOf: RpcError });
  t.is(failure.reason, "ANSWER_TOO_LARGE");
  t.regex(failure.message, /; add a block_number\.$/);
  t.is(scanned(), 10_000);
});

test("after a page that the scan limit ended, the next one starts after its last transaction", async (t) => {
  const { read } = listOf(1_000_000, new Set([999_999, 995_000, 985_000]));
  const page = await read(latestPosition, 50);
  t.deepEqual(
    page.transactions.map(({ blockNumber }) => blockNumber),
    [999_999n, 995_000n],
  );
  t.is(page.next?.blockNumber, 995_000n);
  const next = await read(page.next!, 50);
  t.deepEqual(
    next.transactions.map(({ blockNumber }) => blockNumber),
    [985_000n],
  );
});

test("a list below the scan limit is scanned to its end", async (t) => {
  const { read } = listOf(1_200, new Set([7]));
  const { transactions, next } = await read(latestPosition, 50);
  t.deepEqual([transactions.length, next], [1, undefined]);
});
