/** Making blocks of transactions of which some do harm: each is its own trouble, and nobody else's. */
import test from "ava";
import { markDatabaseError } from "../../src/base/errors/database-error-kind.js";
import { type Chain, createChain } from "../../src/chain/chain.js";
import { createChainStore } from "../../src/chain/chain-store.js";
import type { BlockExecutor } from "../../src/chain/transactions/executor.js";
import { createBlockProducer, type BlockProducerDeps } from "../../src/chain/writer/block-producer.js";
import { maxBlockCost } from "../../src/chain/transactions/cost.js";
import { type State, stateIn } from "../../src/node/chain/transaction-executor.js";
import { RpcError } from "../../src/rpc/errors.js";
import { effectsOn, openTestMempool } from "../helpers/chain/chain.js";
import { prepareEngines } from "../helpers/databases/databases.js";
import { genesisOf } from "../helpers/chain/genesis.js";
import { testKey } from "../helpers/chain/keys.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { createPublic, signTransaction, testNetwork } from "../helpers/chain/transactions.js";
import { countTurns } from "../helpers/process/turns.js";
import { until } from "../helpers/nodes/until.js";
import type { Engine } from "../../src/db/queries/dialects.js";

const [authority, alice, bob] = [testKey(1), testKey(2), testKey(3)];

const engines = await prepareEngines();

/** What goes wrong, by the name of the program that a transaction makes. */
interface Faults {
  /** Throws, or gives work that is added to what was done. */
  readonly onApply?: (name: string) => number;
  /** Throws, after a block was put together of these. */
  readonly onFinish?: (names: readonly string[]) => void;
}

async function open(t: Teardown, engine: Engine, { onApply = () => 0, onFinish = () => undefined }: Faults) {
  const database = await engines.open(t, engine);
  const store = createChainStore(database, stateIn);
  const text = genesisOf(authority);
  const genesis = {
    text,
    hash: testNetwork,
    authorities: [authority.publicKey],
    followers: [],
    writers: [],
    timestampMs: 0,
  };
  await store.insertGenesis(genesis);
  const effects = effectsOn(database, genesis.authorities);
  const unexpected: unknown[] = [];
  const chain: Chain = createChain<State>({
    store,
    mempool: await openTestMempool(store),
    genesis,
    head: await store.head(),
    executor: {
      ...effects,
      start(block, state): BlockExecutor {
        const names: string[] = [];
        const { programs } = state;
        const begun = effects.start(block, {
          ...state,
          programs: {
            ...programs,
            // What goes wrong does so after something was changed.
            async insert(program, timeMs, work) {
              await programs.insert(program, timeMs, work);
              work.addText(onApply(program.name));
              names.push(program.name);
            },
          },
        });
        return {
          ...begun,
          async finish(included) {
            onFinish(names);
            return await begun.finish(included);
          },
        };
      },
    },
    onApplied: () => undefined,
    onUnexpected: (error) => unexpected.push(error),
    nowMs: Date.now,
  });
  return {
    chain,
    unexpected,
    submit: (key: typeof alice, nonce: number, name: string) =>
      chain.submit(signTransaction(key, nonce, createPublic(name, "{}"))),
    fate: (hash: string) => store.transactionStatus(hash),
  };
}

for (const engine of engines.names) {
  test(`${engine}: whatever a transaction throws is its own rejection, and leaves nothing behind`, async (t) => {
    const { chain, unexpected, submit, fate } = await open(t, engine, {
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
    t.deepEqual(await fate(hashes[1]!), { status: "rejected", reason: "The transaction cannot be applied." });
    t.is(unexpected.length, 1);
    t.deepEqual(await fate(hashes[2]!), { status: "included", blockNumber: 1n });
  });

  test(`${engine}: a transaction whose block cannot be ended is found and rejected, and the others get in`, async (t) => {
    const { chain, submit, fate } = await open(t, engine, {
      onFinish(names) {
        if (names.includes("bad")) {
          throw new Error("it does not add up");
        }
      },
    });
    const good: string[] = [];
    for (let nonce = 1; nonce <= 5; nonce++) {
      good.push(await submit(alice, nonce, `p${nonce}`));
    }
    const bad = await submit(bob, 1, "bad");
    good.push(await submit(alice, 6, "last"));
    for (let tries = 0; tries < 20 && (await fate(bad))?.status === "pending"; tries++) {
      await chain.produceBlock(authority).catch(() => undefined);
    }
    t.is((await fate(bad))?.status, "rejected");
    for (let tries = 0; tries < 5; tries++) {
      await chain.produceBlock(authority);
    }
    for (const hash of good) {
      t.is((await fate(hash))?.status, "included");
    }
  });

  test(`${engine}: what is refused for now is tried again, and what its sender sent behind it waits with it`, async (t) => {
    let isBusy = true;
    const { chain, submit, fate } = await open(t, engine, {
      onApply(name) {
        if (name === "busy" && isBusy) {
          throw new RpcError("OVERLOADED", "Too much at once.", 1);
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
    t.is((await fate(hashes[0]!))?.status, "pending");
    t.like(await chain.produceBlock(authority), { block: undefined, deferredCount: 1 });
    isBusy = false;
    const { block } = await chain.produceBlock(authority);
    t.deepEqual(
      block!.transactions.map(({ hash }) => hash),
      hashes.slice(0, 2),
    );
  });

  test(`${engine}: others have their turn after each transaction that takes as long as one`, async (t) => {
    const turn = countTurns(t);
    const turns: number[] = [];
    const { chain, submit } = await open(t, engine, {
      onApply() {
        turns.push(turn());
        const sinceMs = performance.now();
        while (performance.now() - sinceMs < 5) {
          // It is at work.
        }
        return 0;
      },
    });
    for (let nonce = 1; nonce <= 10; nonce++) {
      await submit(alice, nonce, `p${nonce}`);
    }
    t.is((await chain.produceBlock(authority)).block!.transactions.length, 10);
    t.is(new Set(turns).size, 10);
  });

  test(`${engine}: a database in trouble rejects no transaction`, async (t) => {
    let isAway = true;
    const { chain, submit, fate } = await open(t, engine, {
      onApply() {
        if (isAway) {
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
    t.is((await fate(hash))?.status, "pending");
    isAway = false;
    t.is((await chain.produceBlock(authority)).block!.transactions.length, 1);
  });

  test(`${engine}: a block has no more work than a block may have, made here or elsewhere`, async (t) => {
    const heavy = { onApply: (name: string) => (name === "heavy" ? maxBlockCost : 0) };
    const maker = await open(t, engine, heavy);
    await maker.submit(alice, 1, "light");
    await maker.submit(bob, 1, "heavy");
    await maker.submit(alice, 2, "light");
    const { block } = await maker.chain.produceBlock(authority);
    t.is(block!.transactions.length, 2);
    t.is((await maker.chain.produceBlock(authority)).block!.transactions.length, 1);

    const careless = await open(t, engine, {});
    for (const [key, nonce, name] of [
      [bob, 1, "heavy"],
      [alice, 1, "light"],
    ] as const) {
      await careless.submit(key, nonce, name);
    }
    const made = await careless.chain.produceBlock(authority);
    const follower = await open(t, engine, heavy);
    await t.throwsAsync(follower.chain.apply(made.block!.signed), { message: /cost is higher than/ });
    t.is(follower.chain.head()!.number, 0n);
  });
}

test("a sealer that gets nowhere while something waits says so, and that it goes on again", async (t) => {
  const nothing = { block: undefined, rejected: new Map<string, string>(), deferredCount: 0 };
  const told: (string | undefined)[] = [];
  let nowMs = 0;
  let seal: BlockProducerDeps["produceBlock"] = () => Promise.resolve(nothing);
  const sealer = createBlockProducer({
    produceBlock: () => seal(),
    pauseMs: 1,
    stuckAfterMs: 10_000,
    nowMs: () => nowMs,
    onError: () => undefined,
    onStuck: (trouble) => told.push(trouble),
  });
  t.teardown(() => sealer.stop());
  const turns = async (): Promise<void> => {
    let count = 0;
    const inner = seal;
    seal = () => {
      count++;
      return inner();
    };
    await until(() => Promise.resolve(count > 3));
    seal = inner;
  };
  await turns();
  nowMs = 60_000;
  await turns();
  t.deepEqual(told, [], "nothing to do is no trouble");
  seal = () => Promise.resolve({ ...nothing, deferredCount: 1 });
  await turns();
  nowMs = 71_000;
  await turns();
  t.deepEqual(told, ["No block could be produced for 10 s: a resource that its transactions need is busy."]);
  seal = () => Promise.resolve({ ...nothing, rejected: new Map([["0x", ""]]), deferredCount: 1 });
  await turns();
  t.is(told.length, 2);
  t.is(told[1], undefined, "a rejection is progress");
  seal = () => Promise.reject(new Error("no"));
  await turns();
  nowMs = 90_000;
  await turns();
  t.regex(told[2]!, /block production fails/);
  seal = () => Promise.resolve(nothing);
  await turns();
  t.is(told[3], undefined);
});
