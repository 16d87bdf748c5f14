/** Blocks for nodes that are measured, and a chain to make and apply them without a node. */
import { transactionMessage } from "../src/chain/signing.js";
import { create, toBinary } from "@bufbuild/protobuf";
import {
  type Block,
  type Transaction,
  TransactionBodySchema,
  TransactionSchema,
} from "../gen/gatehouse/chain/v1/block_pb.js";
import { AccessMode } from "../gen/gatehouse/storage/v1/storage_pb.js";
import { sha256 } from "../src/base/hash.js";
import type { NodeKey } from "../src/base/node-key.js";
import { type Chain, createChain } from "../src/chain/chain.js";
import { openMempool } from "../src/chain/mempool.js";
import { createChainStore } from "../src/chain/chain-store.js";
import type { Database } from "../src/db/database.js";
import { migrate } from "../src/db/migrate.js";
import { openDatabase } from "../src/db/open.js";
import { createEffects, stateIn } from "../src/node/effects.js";
import { createWorkerPool } from "../src/zk/worker-pool.js";
import { createZkChanges } from "../src/zk/write.js";

/** Opens a database of this genesis, which has no chain yet, and closes it after the work. */
export async function withChain<T>(
  file: string,
  genesisText: string,
  key: NodeKey,
  work: (chain: Chain, database: Database) => Promise<T>,
): Promise<T> {
  const database = await openDatabase(`sqlite:${file}`);
  await migrate(database);
  const store = createChainStore(database, stateIn);
  const genesis = {
    ...{ text: genesisText, hash: sha256(genesisText), timestampMs: 0 },
    ...{ authorities: [key.publicKey], followers: [], writers: [] },
  };
  await store.insertGenesis(genesis);
  const workerPool = createWorkerPool(2);
  const newest = stateIn(database.read).zk;
  const zk = createZkChanges({ newest, workerPool, verificationKey: undefined, authorities: genesis.authorities });
  const chain = createChain({
    store,
    mempool: await openMempool({
      store,
      rates: { bytes: 0, programs: 0, leaves: 0 },
      mayWrite: () => true,
      nowMs: Date.now,
      monotonicMs: () => performance.now(),
      onError: (error) => {
        throw error;
      },
    }),
    genesis,
    head: await store.head(),
    effects: createEffects(zk),
    onApplied: () => undefined,
    onUnexpected: () => undefined,
    nowMs: Date.now,
  });
  const result = await work(chain, database);
  await workerPool.stop();
  await database.close();
  return result;
}

/** The document of a program, by the number of its transaction. */
export type DocumentOf = (nonce: bigint) => string;

/** Makes blocks of so many public programs each. */
export async function makeBlocks(
  chain: Chain,
  key: NodeKey,
  count: number,
  transactions: number,
  documentOf: DocumentOf = (nonce) => `{"n":${nonce}}`,
): Promise<Block[]> {
  const blocks: Block[] = [];
  let nonce = 0n;
  for (let i = 0; i < count; i++) {
    for (let k = 0; k < transactions; k++) {
      nonce++;
      await chain.submit(programOf(key, chain.head()!.genesisHash, nonce, documentOf(nonce)));
    }
    blocks.push((await chain.seal(key)).block!.signed);
  }
  return blocks;
}

/** A transaction that makes a program with this document, which anybody may read. */
export function programOf(key: NodeKey, network: string, nonce: bigint, json: string): Transaction {
  const value = {
    programName: `program ${nonce}`,
    data: { data: { case: "json" as const, value: json } },
    access: { mode: AccessMode.PUBLIC },
  };
  const operation = {
    case: "storage" as const,
    value: { operation: { case: "createProgram" as const, value } },
  };
  const body = toBinary(
    TransactionBodySchema,
    create(TransactionBodySchema, {
      sender: key.publicKey,
      nonce,
      network,
      expiresMs: BigInt(Date.now() + 600_000),
      operation,
    }),
  );
  return create(TransactionSchema, { body, signature: key.sign(transactionMessage(body)) });
}
