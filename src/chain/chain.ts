/**
 * The chain: the only way in which the state of the node changes. Blocks are applied one after the other, each in
 * one database transaction: all of its effects, or none.
 */
import type { Knex } from "knex";
import type { Block, BlockHeader, Transaction } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { Failure } from "../rpc/errors.js";
import type { Genesis } from "./genesis.js";
import { type ChainChanges, type ChainHead, type ChainStore, encodeTransaction, type MempoolSize } from "./store.js";
import {
  type ReadBlock,
  readBlock,
  readTransaction,
  type ReadTransaction,
  readTransactions,
  signBlock,
} from "./transaction.js";

/** What transactions do, feature by feature. */
export interface Effects {
  /**
   * Looks at a transaction before it gets into the mempool. What passes may still be rejected when its block is made.
   *
   * @param blockNumber the block that it can get into at the earliest.
   * @throws Failure for a transaction that would be rejected now.
   */
  check(transaction: ReadTransaction, blockNumber: bigint): Promise<void>;
  /** Begins a block. */
  begin(block: { readonly number: bigint; readonly timeMs: number }): BlockEffects;
}

/** The effects of one block, made inside its database transaction. */
export interface BlockEffects {
  /** Makes the effects of a transaction. Throws a Failure when they cannot be made; then none are left. */
  apply(db: Knex, transaction: ReadTransaction): Promise<void>;
  /** Ends the block, and gives the root of the commitment tree if the block has changed it. */
  finish(db: Knex): Promise<string | undefined>;
}

/** What the chain needs. */
export interface ChainParts {
  readonly store: ChainStore;
  readonly genesis: Genesis | undefined;
  /** The newest block; undefined when the stored chain cannot be followed. */
  readonly head: ChainHead | undefined;
  readonly effects: Effects;
  /** Hears of a block once it is in the database, before anybody else does. */
  readonly onApplied: (block: ReadBlock) => void;
  readonly nowMs: () => number;
}

/** The chain. */
export interface Chain {
  /** The newest block; undefined while there is none. */
  head(): ChainHead | undefined;
  /**
   * Puts a transaction into the mempool and gives its hash.
   *
   * @throws Failure INVALID_REQUEST, INVALID_SIGNATURE, OVERLOADED, STATE_NOT_READY
   */
  submit(transaction: Transaction): Promise<string>;
  /**
   * Applies the next block; one that is applied already changes nothing. Gives its hash.
   *
   * @throws Failure INVALID_REQUEST, INVALID_SIGNATURE, STATE_NOT_READY
   */
  apply(block: Block): Promise<string>;
  /**
   * Makes a block of what is pending, if anything is, and applies it.
   *
   * @returns the block; undefined when there was nothing to put into it.
   */
  seal(key: SealingKey): Promise<ReadBlock | undefined>;
}

/** The key of an authority. */
export interface SealingKey {
  readonly publicKey: string;
  sign(bytes: Uint8Array): Uint8Array;
}

/** Bounds of the mempool. */
const maxPending = 10_000;
const maxPendingBytes = 64 * 1024 * 1024;
/** Bounds of a block that this node makes. */
const maxBlockTransactions = 1_000;
const maxBlockBytes = 3 * 1024 * 1024;
/** How far a block may be ahead of this node's clock. */
const maxAheadMs = 60_000;

/** Builds the chain. */
export function createChain({ store, genesis, head: storedHead, effects, onApplied, nowMs }: ChainParts): Chain {
  let head = storedHead;
  let last: Promise<unknown> = Promise.resolve();
  /** About how full the mempool is; undefined when it has to be counted. */
  let mempoolSize: MempoolSize | undefined;
  let lastReceivedMs = 0;

  /** Blocks are made and applied one at a time. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = last.then(work);
    last = result.catch(() => undefined);
    return result;
  }

  function needHead(): ChainHead {
    if (head === undefined) {
      throw new Failure("STATE_NOT_READY", "The node has no chain yet; start it with --genesis FILE.");
    }
    return head;
  }

  /** Nobody is refused by a guess: what was taken and not used, after an insert that failed, is found by counting. */
  async function takeRoom(bytes: number): Promise<void> {
    const isFull = ({ count, bytes: held }: MempoolSize): boolean =>
      count >= maxPending || held + bytes > maxPendingBytes;
    if (mempoolSize === undefined || isFull(mempoolSize)) {
      mempoolSize = await store.mempoolSize();
    }
    if (isFull(mempoolSize)) {
      throw new Failure("OVERLOADED", "The mempool is full; try again in 5 s.", 5);
    }
    mempoolSize = { count: mempoolSize.count + 1, bytes: mempoolSize.bytes + bytes };
  }

  function begin({ number, timestampMs }: Pick<BlockHeader, "number" | "timestampMs">): BlockEffects {
    return effects.begin({ number, timeMs: Number(timestampMs) });
  }

  function follow(block: ReadBlock): void {
    const { hash, header, signed } = block;
    const { genesisHash } = needHead();
    const { number, timestampMs } = header;
    mempoolSize = undefined;
    head = { number, hash, timestampMs, genesisHash, header: signed.header, signature: signed.signature };
    onApplied(block);
  }

  async function applyNext(block: ReadBlock): Promise<void> {
    const { header } = block;
    const before = needHead();
    if (header.number !== before.number + 1n || header.previousHash !== before.hash) {
      throw new Failure(
        "INVALID_REQUEST",
        `The block is not the next one: block ${before.number + 1n} after ${before.hash} is.`,
      );
    }
    if (!genesis!.authorities.includes(header.proposer)) {
      throw new Failure("INVALID_SIGNATURE", "The block's proposer is no authority of this network.");
    }
    if (header.timestampMs < before.timestampMs || Number(header.timestampMs) > nowMs() + maxAheadMs) {
      throw new Failure("INVALID_REQUEST", "The block's time is before that of the block before, or in the future.");
    }
    await store.write(async (changes) => {
      const begun = begin(header);
      const known = await learn(changes, block.transactions);
      for (const transaction of block.transactions) {
        await include(changes.db, begun, known, transaction);
      }
      await changes.insertTransactions(block.transactions, header.number);
      const root = await begun.finish(changes.db);
      if (root !== header.commitmentRoot) {
        throw new Failure(
          "INVALID_REQUEST",
          `The block says that the commitment tree's root becomes ${header.commitmentRoot ?? "no other"}; here it becomes ${root ?? "no other"}.`,
        );
      }
      await changes.insertBlock(block);
    });
    follow(block);
  }

  return {
    head: () => head,

    async submit(signed) {
      needHead();
      const transaction = readTransaction(signed);
      const { hash, body } = transaction;
      const fate = await store.fate(hash);
      if (fate?.status === "pending" || fate?.status === "included") {
        return hash;
      }
      checkNonce(body.nonce, await store.lastNonce(body.sender));
      await effects.check(transaction, needHead().number + 1n);
      const bytes = encodeTransaction(signed);
      await takeRoom(bytes.length);
      // No two alike, so that they are relayed in the order in which they came.
      lastReceivedMs = Math.max(nowMs(), lastReceivedMs + 1);
      await store.insertPending(transaction, bytes, lastReceivedMs);
      return hash;
    },

    async apply(signed) {
      needHead();
      const block = await readBlock(signed);
      return await inTurn(async () => {
        if (block.header.number <= needHead().number && (await store.block(block.header.number))?.hash === block.hash) {
          return block.hash;
        }
        await applyNext(block);
        return block.hash;
      });
    },

    seal: (key) =>
      inTurn(async () => {
        const before = needHead();
        const pending = await store.pending(maxBlockTransactions);
        if (pending.length === 0) {
          return undefined;
        }
        const header = {
          number: before.number + 1n,
          previousHash: before.hash,
          timestampMs: BigInt(Math.max(nowMs(), Number(before.timestampMs))),
          proposer: key.publicKey,
        };
        const block = await store.write(async (changes) => {
          const begun = begin(header);
          const included: ReadTransaction[] = [];
          let sizeBytes = 0;
          const transactions = inNonceOrder(await readTransactions(pending));
          const known = await learn(changes, transactions);
          for (const transaction of transactions) {
            sizeBytes += transaction.signed.body.length;
            if (included.length > 0 && sizeBytes > maxBlockBytes) {
              break;
            }
            try {
              await changes.attempt((inner) => include(inner.db, begun, known, transaction));
              included.push(transaction);
            } catch (error) {
              if (!(error instanceof Failure)) {
                throw error;
              }
              await changes.reject(transaction.hash, error.message, nowMs());
            }
          }
          mempoolSize = undefined;
          if (included.length === 0) {
            return undefined;
          }
          await changes.insertTransactions(included, header.number);
          const commitmentRoot = await begun.finish(changes.db);
          const made = signBlock({ ...header, commitmentRoot }, included, (bytes) => key.sign(bytes));
          await changes.insertBlock(made);
          return made;
        });
        if (block !== undefined) {
          follow(block);
        }
        return block;
      }),
  };
}

/** What transactions have to fit to: those before them, in the chain and in their own block. */
interface Known {
  /** Hashes of those that are in a block. */
  readonly included: Set<string>;
  /** By sender, the largest nonce. */
  readonly nonces: Map<string, bigint>;
}

async function learn(changes: ChainChanges, transactions: readonly ReadTransaction[]): Promise<Known> {
  return {
    included: await changes.included(transactions.map(({ hash }) => hash)),
    nonces: await changes.lastNonces([...new Set(transactions.map(({ body }) => body.sender))]),
  };
}

/** Makes the effects of the next transaction of a block. Throws a Failure when it does not fit; then nothing changed. */
async function include(
  db: Knex,
  block: BlockEffects,
  { included, nonces }: Known,
  transaction: ReadTransaction,
): Promise<void> {
  const { hash, body } = transaction;
  if (included.has(hash)) {
    throw new Failure("INVALID_REQUEST", "The transaction is in a block already.");
  }
  checkNonce(body.nonce, nonces.get(body.sender));
  await block.apply(db, transaction);
  included.add(hash);
  nonces.set(body.sender, body.nonce);
}

function checkNonce(nonce: bigint, lastNonce: bigint | undefined): void {
  if (lastNonce !== undefined && nonce <= lastNonce) {
    throw new Failure("INVALID_REQUEST", `The nonce ${nonce} is used: the sender's next one is above ${lastNonce}.`);
  }
}

/** The order in which they came, but those of one sender by their nonces. */
function inNonceOrder(transactions: readonly ReadTransaction[]): ReadTransaction[] {
  const bySender = new Map<string, ReadTransaction[]>();
  for (const transaction of transactions.toSorted((a, b) => (a.body.nonce < b.body.nonce ? -1 : 1))) {
    const { sender } = transaction.body;
    bySender.set(sender, [...(bySender.get(sender) ?? []), transaction]);
  }
  return transactions.map(({ body }) => bySender.get(body.sender)!.shift()!);
}
