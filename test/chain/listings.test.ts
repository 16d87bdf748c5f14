/** A page of transactions of which the caller may read few: it is made of a bounded look, and tells nothing of the others. */
import test from "ava";
import {
  type ListedTransaction,
  latestPosition,
  readTransactionPage,
  type TransactionEntry,
  type TransactionPosition,
} from "../../src/chain/blocks/listings.js";
import { RpcError } from "../../src/rpc/errors.js";

/** So many transactions as no test can make blocks of; the caller may read those at these places alone. */
function pageOf(count: number, readable: ReadonlySet<number>) {
  let asked = 0;
  const read = (before: TransactionPosition, pageSize: number) =>
    readTransactionPage({
      store: {
        transactionEntries(_, { blockNumber }, limit) {
          asked += limit;
          const first = Math.min(count, Number(blockNumber) - 1);
          const numbers = Array.from({ length: Math.min(limit, first) }, (__, i) => first - i);
          return Promise.resolve(
            numbers.map((number): TransactionEntry => {
              return { blockNumber: BigInt(number), position: 0, bytes: 100, program: "a program" };
            }),
          );
        },
        listedTransactions: (places) => Promise.resolve(places.map((place) => place as ListedTransaction)),
      },
      of: { sender: "somebody" },
      ...{ before, pageSize, maxBytes: 1_000_000 },
      readableOf: (entries) => Promise.resolve(entries.filter(({ blockNumber }) => readable.has(Number(blockNumber)))),
      signal: new AbortController().signal,
    });
  return { read, asked: () => asked };
}

test("a look for what may be read ends after 10,000 that may not", async (t) => {
  const { read, asked } = pageOf(1_000_000, new Set([3]));
  const failure = await t.throwsAsync(read(latestPosition, 50), { instanceOf: RpcError });
  t.is(failure.reason, "ANSWER_TOO_LARGE");
  t.regex(failure.message, /; add a block_number\.$/);
  t.is(asked(), 10_000);
});

test("a page that ends early goes on after the last that was shown", async (t) => {
  const { read } = pageOf(1_000_000, new Set([999_999, 995_000, 985_000]));
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

test("of few transactions all are looked at", async (t) => {
  const { read } = pageOf(1_200, new Set([7]));
  const { transactions, next } = await read(latestPosition, 50);
  t.deepEqual([transactions.length, next], [1, undefined]);
});
