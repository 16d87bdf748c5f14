/**
 * The part of the composition root that is about data: a chain over the database, and what its blocks change. A writer applies blocks itself, and so knows when what it keeps in memory is old; a reader keeps nothing.
 */
import type { TransactionBody } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { type Chain, createChain, type SealingKey } from "../chain/chain.js";
import { followChain } from "../chain/follower.js";
import type { Genesis } from "../chain/genesis.js";
import type { ChainHead, ChainStore } from "../chain/store.js";
import { watchWrites } from "../chain/write-watch.js";
import type { Config } from "../config/config.js";
import type { Database } from "../db/connect.js";
import { createEffects } from "./effects.js";
import type { Logger } from "../base/log.js";
import { repeat } from "../base/repeat.js";
import { StartError } from "../base/start-error.js";
import { createProgramCache } from "../storage/program-cache.js";
import { createPrograms, type Programs } from "../storage/programs.js";
import { touchedAddress } from "../storage/write.js";
import { cacheNullifiers, cacheTree } from "../zk/cache.js";
import { parseVerificationKey, type VerificationKey } from "../zk/groth16.js";
import { createMerkleTree, type MerkleTree } from "../zk/merkle-tree.js";
import { createNullifiers, type Nullifiers } from "../zk/nullifiers.js";
import { createZkWorkers } from "../zk/worker-pool.js";
import { createZkChanges } from "../zk/write.js";

/** How often a reader looks for a new block. */
const followEveryMs = 500;
/** How often a write is tried while the database takes none. */
const retryWriteEveryMs = 1_000;
/** How often a sealing node looks for pending transactions. */
const sealEveryMs = 250;

/** What the chain of a node is made of. */
export interface NodeChainParts {
  readonly role: Config["role"];
  readonly database: Database;
  readonly store: ChainStore;
  readonly genesis: Genesis | undefined;
  /** The newest block; undefined while there is none. */
  readonly head: ChainHead | undefined;
  /** Hears when the database takes no more writes (why), and when it does again (undefined). */
  readonly onWriteTrouble: (trouble: unknown) => void;
  /** Hears of a block once it is applied. */
  readonly onBlock: () => void;
  readonly log: Logger;
  readonly onStop: (close: () => unknown) => void;
}

/** What blocks change, as it is read. */
export interface NodeData {
  readonly programs: Programs;
  readonly tree: MerkleTree;
  readonly nullifiers: Nullifiers;
}

/** A chain and what its blocks change. */
export interface NodeChain extends NodeData {
  readonly chain: Chain;
}

/**
 * Builds the chain of a node.
 *
 * @throws StartError for a reader whose database holds no chain.
 */
export function createNodeChain(parts: NodeChainParts): NodeChain {
  const { database, role } = parts;
  const stored: NodeData = {
    programs: createPrograms(database),
    tree: createMerkleTree(database),
    nullifiers: createNullifiers(database),
  };
  return role === "reader" ? { ...stored, chain: follow(parts) } : own(parts, stored);
}

function own(parts: NodeChainParts, stored: NodeData): NodeChain {
  const { database, store, genesis, head, onWriteTrouble, onBlock, onStop } = parts;
  const watched = watchWrites({ store, retryEveryMs: retryWriteEveryMs, onChange: onWriteTrouble });
  onStop(() => watched.stop());
  const programs = createProgramCache(stored.programs);
  const tree = cacheTree(stored.tree);
  const nullifiers = cacheNullifiers(stored.nullifiers);
  const workers = createZkWorkers();
  onStop(() => workers.stop());
  const zk = createZkChanges({
    database,
    workers,
    verificationKey: genesis && readVerificationKey(genesis.text),
    authorities: genesis?.authorities ?? [],
  });
  const chain = createChain({
    store: watched.store,
    genesis,
    head,
    effects: createEffects(zk),
    onApplied: ({ header, transactions }) => {
      for (const { body } of transactions) {
        forget(body);
      }
      if (header.commitmentRoot !== undefined) {
        tree.grown();
      }
      onBlock();
    },
    nowMs: Date.now,
  });
  return { chain, programs, tree, nullifiers };

  function forget(body: TransactionBody): void {
    const { operation } = body;
    if (operation.case === "storage") {
      const address = touchedAddress(operation.value, body);
      if (address !== undefined) {
        programs.invalidate(address);
      }
    } else if (operation.case === "zk" && operation.value.operation.case === "spendNullifier") {
      nullifiers.spent(operation.value.operation.value.nullifierHash);
    }
  }
}

function follow({ store, head, log, onStop }: NodeChainParts): Chain {
  if (head === undefined) {
    throw new StartError("The database holds no chain that can be followed; start the node that writes to it first.");
  }
  const follower = followChain(store, head, followEveryMs, (error) =>
    log.warn({ subsystem: "chain", err: error }, "The newest block cannot be read"),
  );
  onStop(() => follower.stop());
  return follower;
}

/**
 * Makes blocks from now on, if this node alone may: its key is the genesis's single authority.
 *
 * @param isSynced none is made before the node knows what its peers have: a block of its own may be among it, which it
 *   has forgotten.
 */
export function sealIfAlone(
  { role, genesis, log, onStop }: NodeChainParts,
  chain: Chain,
  key: SealingKey,
  isSynced: () => boolean,
): void {
  const [authority, ...others] = genesis?.authorities ?? [];
  if (role === "writer" && chain.head() !== undefined && authority === key.publicKey && others.length === 0) {
    const sealer = repeat(
      async () => (isSynced() ? await chain.seal(key) : undefined),
      sealEveryMs,
      (error) => log.error({ subsystem: "chain", err: error }, "A block could not be made; it is tried again"),
    );
    onStop(() => sealer.stop());
  }
}

/**
 * The verification key of a genesis, its member `zk.verificationKey`; undefined where there is none.
 *
 * @throws StartError when it cannot be used.
 */
function readVerificationKey(genesisText: string): VerificationKey | undefined {
  const { zk } = JSON.parse(genesisText) as { readonly zk?: { readonly verificationKey?: unknown } };
  if (zk?.verificationKey === undefined) {
    return undefined;
  }
  try {
    return parseVerificationKey(zk.verificationKey);
  } catch (error) {
    throw new StartError(`The genesis cannot be used at zk.verificationKey. ${(error as Error).message}`);
  }
}
