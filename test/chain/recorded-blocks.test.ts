/**
 * Blocks of a seed, with programs that are made, changed again and again and taken away by one block, and with
 * transactions that are taken back: what they make, and what they count for, stays what it was when this was written.
 */
import test from "ava";
import { join } from "node:path";
import { sha256 } from "../../src/base/crypto/hash.js";
import { stateIn } from "../../src/node/chain/transaction-executor.js";
import { openChain } from "../helpers/chain/chain.js";
import { prepareEngines } from "../helpers/databases/databases.js";
import { testKey } from "../helpers/chain/keys.js";
import { makeRichChain } from "../helpers/chain/rich-chain.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";

const engines = await prepareEngines();

const authority = testKey(1);
const fromMs = 1_800_000_000_000;
/** A change of these is a change of the chain's rules: nodes of other versions find another state, or make other blocks. */
const recorded = {
  lastBlock: "0xc5e58bef26ed18dfe1aa5470fd50b5dbb73a4632709967fdfc5b83d53185fb08",
  work: "0x5bc7218b788b61e8a2aeae3056c0c3ce63e1308412907ea8235096afc2d4d7ee",
};

test("blocks of a seed become what they were, and their transactions count for as much, on each engine", async (t) => {
  const { blocks } = await makeRichChain(join(await temporaryDirectory(t), "made.sqlite"), authority, 12, fromMs);
  t.is(sha256(blocks.at(-1)!.header), recorded.lastBlock);
  for (const engine of engines.names) {
    const database = await engines.open(t, engine);
    const work: number[] = [];
    const chain = await openChain(
      database,
      [authority],
      () => fromMs + 3_600_000,
      undefined,
      undefined,
      (db) => {
        const state = stateIn(db);
        const attempt: typeof state.rows.savepoint = async (change) => {
          const result = await state.rows.savepoint(change);
          work.push(Number(result));
          return result;
        };
        return { ...state, rows: { ...state.rows, savepoint: attempt } };
      },
    );
    for (const block of blocks) {
      // Its header says the roots.
      await chain.apply(block);
    }
    t.is(chain.head()!.hash, recorded.lastBlock, engine);
    t.is(sha256(work.join()), recorded.work, engine);
  }
});
