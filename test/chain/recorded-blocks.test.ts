/**
 * Generated blocks with recorded hashes: they create, change and delete programs within a block, and contain
 * transactions that are rolled back. Their state roots and execution costs must not change.
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
/** A change of these values changes the rules of the chain: nodes of other versions would compute other blocks. */
const recorded = {
  lastBlock: "0xc5e58bef26ed18dfe1aa5470fd50b5dbb73a4632709967fdfc5b83d53185fb08",
  costs: "0x5bc7218b788b61e8a2aeae3056c0c3ce63e1308412907ea8235096afc2d4d7ee",
};

test("generated blocks have the recorded state roots and execution costs on each engine", async (t) => {
  const { blocks } = await makeRichChain(join(await temporaryDirectory(t), "made.sqlite"), authority, 12, fromMs);
  t.is(sha256(blocks.at(-1)!.header), recorded.lastBlock);
  for (const engine of engines.names) {
    const database = await engines.open(t, engine);
    const costs: number[] = [];
    const chain = await openChain(database, [authority], {
      nowMs: () => fromMs + 3_600_000,
      states: (db) => {
        const state = stateIn(db);
        const savepoint: typeof state.rows.savepoint = async (change) => {
          const result = await state.rows.savepoint(change);
          costs.push(Number(result));
          return result;
        };
        return { ...state, rows: { ...state.rows, savepoint } };
      },
    });
    for (const block of blocks) {
      // Also checks the state root in the header.
      await chain.apply(block);
    }
    t.is(chain.head()!.hash, recorded.lastBlock, engine);
    t.is(sha256(costs.join()), recorded.costs, engine);
  }
});
