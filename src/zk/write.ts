/** What transactions change in the commitment tree and among the nullifiers. */
import { hex32 } from "../base/hash.js";
import type { Knex } from "knex";
import { LRUCache } from "lru-cache";
import type { SpendNullifier, ZkOperation } from "../../gen/gatehouse/zk/v1/operation_pb.js";
import type { Database } from "../db/connect.js";
import { Failure } from "../rpc/errors.js";
import type { VerificationKey } from "./groth16.js";
import { appendLeaves, countLeaves, hasCommitment, isKnownRoot, knownBlocks, maxLeaves } from "./merkle-tree.js";
import { findSpent, insertSpent } from "./nullifiers.js";
import { fieldOrder } from "./poseidon.js";
import type { WorkerPool } from "./worker-pool.js";

/** Who changes something, by which transaction. */
export interface ZkContext {
  readonly sender: string;
  readonly transactionHash: string;
}

/** The changes of one block. */
export interface ZkBlock {
  /** Makes a change, inside the database transaction of the block. Throws a Failure when it cannot be made. */
  apply(db: Knex, operation: ZkOperation, context: ZkContext): Promise<void>;
  /** Adds the block's leaves to the tree, and gives the new root if there are any. */
  finish(db: Knex): Promise<string | undefined>;
}

export interface ZkChanges {
  /** Throws the Failure that the change would be rejected with in this block, as far as that is known now. */
  check(operation: ZkOperation, context: ZkContext & { readonly blockNumber: bigint }): Promise<void>;
  begin(blockNumber: bigint): ZkBlock;
}

export interface ZkChangesParts {
  readonly database: Pick<Database, "engine" | "read">;
  readonly workerPool: WorkerPool;
  /** What spends are verified against; where there is none, only authorities may spend. */
  readonly verificationKey: VerificationKey | undefined;
  /** Public keys of the genesis. */
  readonly authorities: readonly string[];
}

/** Verdicts on proofs that are kept, so that a transaction that was checked is not verified again for its block. */
const keptVerdicts = 10_000;

export function createZkChanges({ database, workerPool, verificationKey, authorities }: ZkChangesParts): ZkChanges {
  const { engine } = database;
  const verdicts = new LRUCache<string, boolean>({ max: keptVerdicts });

  async function checkCommitment(db: Knex, commitment: string): Promise<bigint> {
    const leaf = readElement("A commitment", commitment);
    if (leaf === 0n) {
      throw new Failure("INVALID_REQUEST", "A commitment is not 0: that is the empty leaf.");
    }
    if (await hasCommitment(db, commitment)) {
      throw alreadyThere();
    }
    return leaf;
  }

  async function checkSpend(
    db: Knex,
    spend: SpendNullifier,
    { sender, transactionHash }: ZkContext,
    blockNumber: bigint,
  ): Promise<void> {
    const { nullifierHash } = spend;
    if (!hex32.test(nullifierHash)) {
      throw new Failure("INVALID_REQUEST", "A nullifier hash is 0x and 64 lower-case hex digits.");
    }
    const spent = await findSpent(db, nullifierHash);
    if (spent !== undefined) {
      throw new Failure("ALREADY_EXISTS", `The nullifier is spent already, in block ${spent.blockNumber}.`);
    }
    if (verificationKey === undefined) {
      if (!authorities.includes(sender)) {
        throw new Failure(
          "PERMISSION_DENIED",
          "This network has no verification key for proofs, so only an authority of its genesis spends nullifiers.",
        );
      }
      return;
    }
    await checkProof(db, verificationKey, spend, transactionHash, blockNumber);
  }

  async function checkProof(
    db: Knex,
    key: VerificationKey,
    { nullifierHash, root, proof }: SpendNullifier,
    transactionHash: string,
    blockNumber: bigint,
  ): Promise<void> {
    const signals = [readElement("A nullifier hash", nullifierHash), readElement("A root", root)];
    if (proof === undefined) {
      throw new Failure("INVALID_PROOF", "A nullifier is spent with a proof; there is none.");
    }
    if (!(await isKnownRoot(db, engine, root, blockNumber))) {
      throw new Failure("INVALID_PROOF", `The proof's root was current after none of the last ${knownBlocks} blocks.`);
    }
    let verdict = verdicts.get(transactionHash);
    if (verdict === undefined) {
      const { a, b, c } = proof;
      verdict = await workerPool.verify({ key, proof: { a, b, c }, signals });
      verdicts.set(transactionHash, verdict);
    }
    if (!verdict) {
      throw new Failure("INVALID_PROOF", "The proof does not hold for this nullifier and root.");
    }
  }

  return {
    async check({ operation }, context) {
      switch (operation.case) {
        case "addCommitment":
          await checkCommitment(database.read, operation.value.commitment);
          return;
        case "spendNullifier":
          await checkSpend(database.read, operation.value, context, context.blockNumber);
          return;
        case undefined:
          throw nothingToDo();
      }
    },

    begin(blockNumber) {
      const leaves = new Map<string, bigint>();
      let leafCount: number | undefined;
      return {
        async apply(db, { operation }, context) {
          switch (operation.case) {
            case "addCommitment": {
              const { commitment } = operation.value;
              const leaf = await checkCommitment(db, commitment);
              if (leaves.has(commitment)) {
                throw alreadyThere();
              }
              leafCount ??= await countLeaves(db);
              if (leafCount + leaves.size >= maxLeaves) {
                throw new Failure("OVERLOADED", `The commitment tree is full: it has ${maxLeaves} leaves.`);
              }
              leaves.set(commitment, leaf);
              return;
            }
            case "spendNullifier": {
              const { transactionHash } = context;
              await checkSpend(db, operation.value, context, blockNumber);
              await insertSpent(db, operation.value.nullifierHash, { blockNumber, transactionHash });
              return;
            }
            case undefined:
              throw nothingToDo();
          }
        },
        finish: async (db) =>
          leaves.size === 0
            ? undefined
            : await appendLeaves(db, engine, {
                leaves: [...leaves.values()],
                blockNumber,
                foldAll: workerPool.foldAll,
              }),
      };
    },
  };
}

function readElement(name: string, text: string): bigint {
  if (!hex32.test(text)) {
    throw new Failure("INVALID_REQUEST", `${name} is 0x and 64 lower-case hex digits.`);
  }
  const element = BigInt(text);
  if (element >= fieldOrder) {
    throw new Failure("INVALID_REQUEST", `${name} is below the order of BN254's scalar field.`);
  }
  return element;
}

function alreadyThere(): Failure {
  return new Failure("ALREADY_EXISTS", "The commitment is in the tree already.");
}

function nothingToDo(): Failure {
  return new Failure("INVALID_REQUEST", "The operation says nothing to do.");
}
