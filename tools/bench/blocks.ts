/** Creates blocks for measured nodes, and a chain that produces and applies them without a node. */
import { transactionMessage } from "../../src/chain/transactions/transaction.js";
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type Block,
  type Transaction,
  TransactionBodySchema,
  TransactionSchema,
} from "../../gen/gatehouse/chain/v1/block_pb.js";
import type { StorageOperationSchema } from "../../gen/gatehouse/storage/v1/operation_pb.js";
import { AccessMode } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import { createNodeKey, type NodeKey, nodeKeyPath } from "../../src/base/crypto/node-key.js";
import { type Chain, createChain } from "../../src/chain/chain.js";
import { openMempool } from "../../src/chain/mempool/mempool.js";
import { createChainStore } from "../../src/chain/chain-store.js";
import type { Database } from "../../src/db/queries/database.js";
import { migrate } from "../../src/db/migrations/migrate.js";
import { openDatabase } from "../../src/db/open.js";
import { createTransactionExecutor, latestIn, stateIn } from "../../src/node/chain/transaction-executor.js";
import { createZkThreads } from "../../src/zk/worker-pool.js";
import { createZkChanges } from "../../src/zk/write.js";

/** Opens a database with this genesis and no further blocks, and closes it after the work. */
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
  const workerPool = createZkThreads(2);
  const latest = latestIn(database.read);
  const zk = createZkChanges({ latest, workerPool, verificationKey: undefined, authorities: genesis.authorities });
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
    executor: createTransactionExecutor(zk),
    onApplied: () => undefined,
    onUnexpected: () => undefined,
    nowMs: Date.now,
  });
  const result = await work(chain, database);
  await workerPool.stop();
  await database.close();
  return result;
}

/** Returns the operation of a transaction by the sender's nonce. */
export type OperationOf = (nonce: bigint) => StorageChange;
type StorageChange = NonNullable<MessageInitShape<typeof StorageOperationSchema>["operation"]>;

/** Creates a public program with this document. */
export function programOf(nonce: bigint, json: string): StorageChange {
  const value = {
    programName: `program ${nonce}`,
    data: { data: { case: "json" as const, value: json } },
    access: { mode: AccessMode.PUBLIC },
  };
  return { case: "createProgram", value };
}

/** Creates the data directory of an authority, with its key, and a genesis file next to it. */
export async function makeSource(home: string) {
  const dataDir = join(home, "source");
  await mkdir(dataDir, { recursive: true });
  const key = await createNodeKey(nodeKeyPath(dataDir));
  const genesis = JSON.stringify({ name: "bench", authorities: [key.publicKey] });
  const genesisFile = join(home, "genesis.json");
  await writeFile(genesisFile, genesis);
  return { dataDir, key, genesis, genesisFile, database: join(dataDir, "gatehouse.sqlite") };
}

/** Blocks to create. */
export interface BlocksToMake {
  readonly count: number;
  /** Number of transactions in each block. */
  readonly transactions: number;
  /** Default: small programs. */
  readonly operationOf?: OperationOf;
  readonly onBlock?: (block: Block) => void;
}

/** Produces blocks, one after the other. */
export async function makeBlocks(chain: Chain, key: NodeKey, blocks: BlocksToMake): Promise<void> {
  const { count, transactions, operationOf = (n: bigint) => programOf(n, `{"n":${n}}`), onBlock } = blocks;
  let nonce = 0n;
  for (let i = 0; i < count; i++) {
    const { genesisHash } = chain.head()!;
    const submitted = Array.from({ length: transactions }, () => {
      nonce++;
      return chain.submit(transactionOf(key, genesisHash, nonce, operationOf(nonce)));
    });
    await Promise.all(submitted);
    const { block } = await chain.produceBlock(key);
    onBlock?.(block!.signed);
  }
}

/** Signs a transaction. */
export function transactionOf(key: NodeKey, network: string, nonce: bigint, operation: StorageChange): Transaction {
  const body = toBinary(
    TransactionBodySchema,
    create(TransactionBodySchema, {
      sender: key.publicKey,
      nonce,
      network,
      expiresMs: BigInt(Date.now() + 600_000),
      operation: { case: "storage", value: { operation } },
    }),
  );
  return create(TransactionSchema, { body, signature: key.sign(transactionMessage(body)) });
}
