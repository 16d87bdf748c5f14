/** A chain over a bare database. */
import { type Chain, createChain } from "../../../src/chain/chain.js";
import { createChainStore } from "../../../src/chain/chain-store.js";
import type { Executor } from "../../../src/chain/transactions/executor.js";
import { type Mempool, type MempoolDeps, openMempool } from "../../../src/chain/mempool/mempool.js";
import type { Database, Queries } from "../../../src/db/queries/database.js";
import {
  createTransactionExecutor,
  latestIn,
  type State,
  stateIn,
} from "../../../src/node/chain/transaction-executor.js";
import { sha256 } from "../../../src/base/crypto/hash.js";
import { fold } from "../../../src/zk/fold.js";
import { type VerificationKey, verifyGroth16 } from "../../../src/zk/groth16.js";
import type { ZkThreads } from "../../../src/zk/worker-pool.js";
import { createZkChanges } from "../../../src/zk/write.js";
import { genesisOf, type TestKey } from "./keys.js";

/** Opens a chain over a migrated database that is empty or contains a chain of this genesis. */
export async function openChain(
  database: Database,
  authorities: readonly TestKey[],
  nowMs: () => number = Date.now,
  verificationKey?: VerificationKey,
  onUnexpected: (error: unknown) => void = () => undefined,
  states: (db: Queries) => State = stateIn,
): Promise<Chain> {
  const store = createChainStore(database, states);
  const mempool = await openTestMempool(store, nowMs);
  const text = genesisOf(...authorities);
  const genesis = {
    text,
    hash: sha256(text),
    authorities: authorities.map(({ publicKey }) => publicKey),
    followers: [],
    writers: [],
    timestampMs: 0,
  };
  if ((await store.head()) === undefined) {
    await store.insertGenesis(genesis);
  }
  const executor = effectsOn(database, genesis.authorities, verificationKey);
  const onApplied = (): void => undefined;
  return createChain({ onApplied, onUnexpected, store, mempool, genesis, head: await store.head(), executor, nowMs });
}

/** Opens a mempool that accepts transactions of every sender, without rate limits. */
export async function openTestMempool(
  store: MempoolDeps["store"],
  nowMs: () => number = Date.now,
  rules: Partial<Pick<MempoolDeps, "rates" | "mayWrite" | "monotonicMs">> = {},
): Promise<Mempool> {
  return await openMempool({
    store,
    rates: { bytes: 0, programs: 0, leaves: 0 },
    mayWrite: () => true,
    nowMs,
    monotonicMs: nowMs,
    onError: () => undefined,
    ...rules,
  });
}

/** Creates the executor of all features on a database, in this thread. */
export function effectsOn(
  database: Database,
  authorities: readonly string[],
  verificationKey?: VerificationKey,
): Executor<State> {
  const latest = latestIn(database.read);
  return createTransactionExecutor(createZkChanges({ latest, workerPool: inlinePool, verificationKey, authorities }));
}

/** The field arithmetic on the calling thread. */
export const inlinePool: ZkThreads = {
  foldAll: (tasks) => Promise.resolve(tasks.map(fold)),
  threads: 1,
  verify: (task) => Promise.resolve(verifyGroth16(task)),
  stop: () => Promise.resolve(),
};
