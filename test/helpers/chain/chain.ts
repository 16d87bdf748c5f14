/** A chain over a bare database. */
import { type Chain, type ChainDeps, createChain } from "../../../src/chain/chain.js";
import { createChainStore } from "../../../src/chain/chain-store.js";
import type { Executor } from "../../../src/chain/transactions/executor.js";
import type { ChainStore } from "../../../src/chain/blocks/store.js";
import type { ChainHead } from "../../../src/chain/blocks/store-types.js";
import { type MempoolDeps, openMempool } from "../../../src/chain/mempool/mempool.js";
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

/** Parts of a chain, which tests replace to inject errors and delays. */
export interface ChainSettings {
  /** Text of the genesis. Default: {@link genesisOf} the authorities. */
  readonly text?: string;
  readonly nowMs?: () => number;
  readonly verificationKey?: VerificationKey | undefined;
  readonly states?: (db: Queries) => State;
  /** Rules of the mempool. Default: it accepts transactions of every sender, without rate limits. */
  readonly rules?: Partial<Pick<MempoolDeps, "rates" | "mayWrite" | "monotonicMs">>;
  readonly wrapStore?: (store: ChainStore<State>) => ChainStore<State>;
  readonly wrapExecutor?: (executor: Executor<State>) => Executor<State>;
  /** Latest block that the chain knows. Default: the stored one. */
  readonly head?: ChainHead;
  readonly onApplied?: ChainDeps<State>["onApplied"];
  readonly onUnexpected?: ChainDeps<State>["onUnexpected"];
}

/** Opens a chain, as {@link openChain} does, and returns it with its store and mempool. */
export async function openParts(database: Database, authorities: readonly TestKey[], settings: ChainSettings = {}) {
  const { nowMs = Date.now, states = stateIn, wrapStore = (one) => one, wrapExecutor = (one) => one } = settings;
  const { text = genesisOf(...authorities) } = settings;
  const keys = authorities.map(({ publicKey }) => publicKey);
  const genesis = { text, hash: sha256(text), authorities: keys, followers: [], writers: [], timestampMs: 0 };
  const store = wrapStore(createChainStore(database, states));
  if ((await store.head()) === undefined) {
    await store.insertGenesis(genesis);
  }
  const mempool = await openMempool({
    ...{ store, rates: { bytes: 0, programs: 0, leaves: 0 }, mayWrite: () => true, nowMs, monotonicMs: nowMs },
    onError: () => undefined,
    ...settings.rules,
  });
  const chain = createChain({
    ...{ store, mempool, genesis, nowMs, head: settings.head ?? (await store.head()) },
    executor: wrapExecutor(effectsOn(database, keys, settings.verificationKey)),
    onApplied: settings.onApplied ?? (() => undefined),
    onUnexpected: settings.onUnexpected ?? (() => undefined),
  });
  return { store, mempool, chain };
}

/** Opens a chain over a migrated database that is empty or contains a chain of this genesis. */
export async function openChain(
  database: Database,
  authorities: readonly TestKey[],
  settings: ChainSettings = {},
): Promise<Chain> {
  return (await openParts(database, authorities, settings)).chain;
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
