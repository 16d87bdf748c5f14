/** Block production with transactions that fail or are deferred, which must not affect the others. */
import test from "ava";
import { markDatabaseError } from "../../src/base/errors/database-error-kind.js";
import { maxBlockCost } from "../../src/chain/transactions/executor.js";
import { createProgressMonitor } from "../../src/node/chain/block-production.js";
import { RpcError } from "../../src/rpc/errors.js";
import { openParts } from "../helpers/chain/chain.js";
import { prepareEngines } from "../helpers/databases/databases.js";
import { testKey } from "../helpers/chain/keys.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { createPublic, signTransaction } from "../helpers/chain/transactions.js";
import { countTurns } from "../helpers/process/heap.js";
import type { Engine } from "../../src/db/queries/dialects.js";

const [authority, alice, bob] = [testKey(1), testKey(2), testKey(3)];

const engines = await prepareEngines();

/** Injected errors, by the name of the program that a transaction creates. */
interface Faults {
  /** Called once a program was created. Throws, or returns additional execution cost. */
  readonly onApply?: (name: string) => number;
  /** Called with the programs of a block before the block is completed; may throw. */
  readonly onFinish?: (names: readonly string[]) => void;
}

async function open(t: Teardown, engine: Engine, { onApply = () => 0, onFinish = () => undefined }: Faults) {
  const unexpected: unknown[] = [];
  const { chain, store } = await openParts(await engines.open(t, engine), [authority], {
    onUnexpected: (error) => unexpected.push(error),
    wrapExecutor: (executor) => ({
      ...executor,
      start(block, state) {
        const names: string[] = [];
        const programs: typeof state.programs = {
          ...state.programs,
          // Errors are thrown after a change, which must be rolled back.
          async insert(program, timeMs, work) {
            await state.programs.insert(program, timeMs, work);
            work.addText(onApply(program.name));
            names.push(program.name);
          },
        };
        const execution = executor.start(block, { ...state, programs });
        return {
          ...execution,
          async finish(included) {
            onFinish(names);
            return await execution.finish(included);
          },
        };
      },
    }),
  });
  return {
    chain,
    unexpected,
    submit: (key: typeof alice, nonce: number, name: string) =>
      chain.submit(signTransaction(key, nonce, createPublic(name, "{}"))),
    statusOf: (hash: string) => store.transactionStatus(hash),
  };
}

for (const engine of engines.names) {
  test(`${engine}: rejects a transaction that throws an unexpected error, and includes the others`, async (t) => {
    const { chain, unexpected, submit, statusOf } = await open(t, engine, {
      onApply(name) {
        if (name === "bad") {
          throw new TypeError("undefined is not a function");
        }
        return 0;
      },
    });
    const hashes = [await submit(alice, 1, "a"), await submit(bob, 1, "bad"), await submit(alice, 2, "b")];
    const { block } = await chain.produceBlock(authority);
    t.is(block!.transactions.length, 2);
    t.deepEqual(await statusOf(hashes[1]!), { status: "rejected", reason: "The transaction cannot be applied." });
    t.is(unexpected.length, 1);
    t.deepEqual(await statusOf(hashes[2]!), { status: "included", blockNumber: 1n });
  });

  test(`${engine}: finds and rejects the transaction that makes a block fail, and includes the others`, async (t) => {
    const { chain, submit, statusOf } = await open(t, engine, {
      onFinish(names) {
        if (names.includes("bad")) {
          throw new Error("the block cannot be completed");
        }
      },
    });
    const others: string[] = [];
    for (let nonce = 1; nonce <= 5; nonce++) {
      others.push(await submit(alice, nonce, `p${nonce}`));
    }
    const bad = await submit(bob, 1, "bad");
    others.push(await submit(alice, 6, "last"));
    for (let tries = 0; tries < 20 && (await statusOf(bad))?.status === "pending"; tries++) {
      await chain.produceBlock(authority).catch(() => undefined);
    }
    t.is((await statusOf(bad))?.status, "rejected");
    for (let tries = 0; tries < 5; tries++) {
      await chain.produceBlock(authority);
    }
    for (const hash of others) {
      t.is((await statusOf(hash))?.status, "included");
    }
  });

  test(`${engine}: defers a transaction after a temporary rejection, and the later ones of its sender`, async (t) => {
    let isBusy = true;
    const { chain, submit, statusOf } = await open(t, engine, {
      onApply(name) {
        if (name === "busy" && isBusy) {
          throw new RpcError("OVERLOADED", "Too many at once.", 1);
        }
        return 0;
      },
    });
    const hashes = [await submit(alice, 1, "busy"), await submit(alice, 2, "behind"), await submit(bob, 1, "other")];
    const first = await chain.produceBlock(authority);
    t.is(first.deferredCount, 1);
    t.deepEqual(
      first.block!.transactions.map(({ hash }) => hash),
      [hashes[2]],
    );
    t.is((await statusOf(hashes[0]!))?.status, "pending");
    t.like(await chain.produceBlock(authority), { block: undefined, deferredCount: 1 });
    isBusy = false;
    const { block } = await chain.produceBlock(authority);
    t.deepEqual(
      block!.transactions.map(({ hash }) => hash),
      hashes.slice(0, 2),
    );
  });

  test(`${engine}: yields to the event loop after each transaction that takes 5 ms`, async (t) => {
    const currentTick = countTurns(t);
    const ticks: number[] = [];
    const { chain, submit } = await open(t, engine, {
      onApply() {
        ticks.push(currentTick());
        const sinceMs = performance.now();
        while (performance.now() - sinceMs < 5) {
          // Blocks the event loop.
        }
        return 0;
      },
    });
    for (let nonce = 1; nonce <= 10; nonce++) {
      await submit(alice, nonce, `p${nonce}`);
    }
    t.is((await chain.produceBlock(authority)).block!.transactions.length, 10);
    t.is(new Set(ticks).size, 10);
  });

  test(`${engine}: rejects no transaction while the database is unavailable`, async (t) => {
    let isUnavailable = true;
    const { chain, submit, statusOf } = await open(t, engine, {
      onApply() {
        if (isUnavailable) {
          const error = new Error("the disk is gone");
          markDatabaseError(error);
          throw error;
        }
        return 0;
      },
    });
    const hash = await submit(alice, 1, "a");
    for (let tries = 0; tries < 3; tries++) {
      await t.throwsAsync(chain.produceBlock(authority), { message: "the disk is gone" });
    }
    t.is((await statusOf(hash))?.status, "pending");
    isUnavailable = false;
    t.is((await chain.produceBlock(authority)).block!.transactions.length, 1);
  });

  test(`${engine}: neither builds nor applies a block above the cost limit`, async (t) => {
    const costs = { onApply: (name: string) => (name === "heavy" ? maxBlockCost : 0) };
    const producer = await open(t, engine, costs);
    await producer.submit(alice, 1, "light");
    await producer.submit(bob, 1, "heavy");
    await producer.submit(alice, 2, "light");
    const { block } = await producer.chain.produceBlock(authority);
    t.is(block!.transactions.length, 2);
    t.is((await producer.chain.produceBlock(authority)).block!.transactions.length, 1);

    const withoutCosts = await open(t, engine, {});
    for (const [key, nonce, name] of [
      [bob, 1, "heavy"],
      [alice, 1, "light"],
    ] as const) {
      await withoutCosts.submit(key, nonce, name);
    }
    const tooCostly = await withoutCosts.chain.produceBlock(authority);
    const follower = await open(t, engine, costs);
    await t.throwsAsync(follower.chain.apply(tooCostly.block!.signed), { message: /cost is higher than/ });
    t.is(follower.chain.head()!.number, 0n);
  });
}

test("block production reports that it is stuck while transactions wait, and its next progress", (t) => {
  const nothing = { block: undefined, rejected: new Map<string, string>(), deferredCount: 0 };
  const busy = { ...nothing, deferredCount: 1 };
  const reports: (string | undefined)[] = [];
  let nowMs = 0;
  const record = createProgressMonitor(
    () => nowMs,
    (reason) => reports.push(reason),
  );
  for (const [atMs, outcome, ...expected] of [
    [0, nothing],
    // An empty mempool counts as progress, and so does a rejection.
    [60_000, nothing],
    [60_000, busy],
    [71_000, busy, "No block could be produced for 10 s: a resource that its transactions need is busy."],
    [72_000, { ...busy, rejected: new Map([["0x", ""]]) }, undefined],
    [82_000, "failed"],
    [90_000, "failed", "No block could be produced for 10 s: block production fails; see the log for the error."],
    [91_000, nothing, undefined],
    [99_000, undefined],
  ] as const) {
    nowMs = atMs;
    record(outcome);
    t.deepEqual(reports.splice(0), expected, `${atMs}`);
  }
});
