/** Keys, signed transactions and blocks, made of protobuf-es and node:crypto; and a chain over a bare database. */
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Transaction, TransactionBodySchema, TransactionSchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { AccessMode } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import type { ZkOperationSchema } from "../../gen/gatehouse/zk/v1/operation_pb.js";
import type { StorageOperationSchema } from "../../gen/gatehouse/storage/v1/operation_pb.js";
import { type Chain, createChain } from "../../src/chain/chain.js";
import { createChainStore } from "../../src/chain/chain-store.js";
import type { Effects } from "../../src/chain/effects.js";
import type { Database } from "../../src/db/database.js";
import { createEffects, type State, stateIn } from "../../src/node/effects.js";
import { sha256 } from "../../src/base/hash.js";
import { fold } from "../../src/zk/fold.js";
import { type VerificationKey, verifyGroth16 } from "../../src/zk/groth16.js";
import type { WorkerPool } from "../../src/zk/worker-pool.js";
import { createZkChanges } from "../../src/zk/write.js";
import { askJson } from "./plain-client.js";
import { silentPeer, startTestNode, type Teardown, temporaryDirectory, type TestNode } from "./start-node.js";
import { until } from "./until.js";

/** A key that is the same in every run. */
export interface TestKey {
  /** 0x and 64 lower-case hex digits. */
  readonly publicKey: string;
  readonly privateKey: KeyObject;
  sign(bytes: Uint8Array): Buffer;
}

/** PKCS #8 before the 32 bytes of an Ed25519 key. */
const pkcs8Prefix = Buffer.from("302e020100300506032b657004220420", "hex");

/** The key of a number. */
export function testKey(seed: number): TestKey {
  const der = Buffer.concat([pkcs8Prefix, Buffer.alloc(32, seed)]);
  const privateKey = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  const raw = createPublicKey(privateKey).export({ format: "der", type: "spki" }).subarray(-32);
  return {
    publicKey: `0x${raw.toString("hex")}`,
    privateKey,
    sign: (bytes) => sign(null, bytes, privateKey),
  };
}

/** An operation on the commitment tree or a nullifier as a literal. */
export type ZkChange = NonNullable<MessageInitShape<typeof ZkOperationSchema>["operation"]>;

/** A storage operation as a literal. */
export type Operation = NonNullable<MessageInitShape<typeof StorageOperationSchema>["operation"]>;

/** Signs a transaction. */
export function signTransaction(
  key: TestKey,
  nonce: number,
  operation: Operation,
  sender = key.publicKey,
): Transaction {
  return signOperation(key, nonce, { case: "storage", value: { operation } }, sender);
}

/** Signs a transaction that changes the commitment tree or a nullifier. */
export function signZk(key: TestKey, nonce: number, operation: ZkChange): Transaction {
  return signOperation(key, nonce, { case: "zk", value: { operation } }, key.publicKey);
}

/** Adds a commitment. */
export function commit(commitment: string): ZkChange {
  return { case: "addCommitment", value: { commitment } };
}

/** Spends a nullifier without a proof. */
export function spend(nullifierHash: string): ZkChange {
  return { case: "spendNullifier", value: { nullifierHash } };
}

function signOperation(
  key: TestKey,
  nonce: number,
  operation: NonNullable<MessageInitShape<typeof TransactionBodySchema>["operation"]>,
  sender: string,
): Transaction {
  const body = toBinary(
    TransactionBodySchema,
    create(TransactionBodySchema, {
      sender,
      nonce: BigInt(nonce),
      timestampMs: 1_700_000_000_000n,
      operation,
    }),
  );
  return create(TransactionSchema, { body, signature: key.sign(body) });
}

/** An operation that makes a public program with this document. */
export function createPublic(programName: string, json: string): Operation {
  return {
    case: "createProgram",
    value: { programName, data: { data: { case: "json", value: json } }, access: { mode: AccessMode.PUBLIC } },
  };
}

/** Text of a genesis with these authorities. */
export function genesisOf(...keys: readonly TestKey[]): string {
  return JSON.stringify({ name: "test", authorities: keys.map(({ publicKey }) => publicKey) });
}

/**
 * A directory as a node's operator would prepare it: `genesis.json` of these authorities, and `identity.key` of the
 * first one.
 */
export async function authorityDirectory(t: Teardown, ...authorities: readonly TestKey[]) {
  const dir = await temporaryDirectory(t);
  await writeFile(join(dir, "genesis.json"), genesisOf(...authorities));
  await writeKey(join(dir, "identity.key"), authorities[0]!);
  return dir;
}

/**
 * Starts a node that takes part by itself: it makes the blocks, and the one peer it knows never answers. Resolves when
 * it is accepting.
 */
export async function startMember(
  t: Teardown,
  flags: Readonly<Record<string, string | boolean>> = {},
): Promise<TestNode> {
  const dir = await authorityDirectory(t, testKey(1));
  await writeFile(join(dir, "peers.json"), JSON.stringify([{ url: silentPeer }]));
  const own = { genesis: "genesis.json", peers: "peers.json", "loop-interval": "0.1" };
  const node = await startTestNode(t, { ...own, ...flags }, dir);
  await until(async () => (await askJson<{ accepting: boolean }>(node.port, "/health")).accepting);
  return node;
}

/** Writes a key's file. */
export async function writeKey(path: string, { privateKey }: TestKey): Promise<void> {
  await writeFile(path, privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 });
}

/** A chain over a database that has been migrated and holds nothing, or a chain of this genesis. */
export async function openChain(
  database: Database,
  authorities: readonly TestKey[],
  nowMs: () => number = Date.now,
  verificationKey?: VerificationKey,
): Promise<Chain> {
  const store = createChainStore(database, stateIn);
  const text = genesisOf(...authorities);
  const genesis = {
    text,
    hash: sha256(text),
    authorities: authorities.map(({ publicKey }) => publicKey),
    timestampMs: 0,
  };
  if ((await store.head()) === undefined) {
    await store.insertGenesis(genesis);
  }
  const effects = effectsOn(database, genesis.authorities, verificationKey);
  return createChain({ store, genesis, head: await store.head(), effects, onApplied: () => undefined, nowMs });
}

/** The effects of all features on a database, in this thread. */
export function effectsOn(
  database: Database,
  authorities: readonly string[],
  verificationKey?: VerificationKey,
): Effects<State> {
  const newest = stateIn(database.read).zk;
  return createEffects(createZkChanges({ newest, workerPool: inlinePool, verificationKey, authorities }));
}

/** The long arithmetic without threads. */
export const inlinePool: WorkerPool = {
  foldAll: (tasks) => Promise.resolve(tasks.map(fold)),
  verify: (task) => Promise.resolve(verifyGroth16(task)),
  stop: () => Promise.resolve(),
};
