/** Scan that verifies all stored blocks: signatures, chain of hashes, indexes and changes of the state. */
import type { BlockHeader } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { CorruptionError } from "../../base/errors/corruption.js";
import { runCheck, type Verification } from "../../base/errors/verification.js";
import { RpcError } from "../../rpc/errors.js";
import type { BlockStore } from "./block-store.js";
import type { Genesis } from "./genesis.js";
import { notSigned } from "./stored-block.js";
import type { ChainStore } from "./store.js";
import { type VerifiedBlock, verifyBlock, verifyHeader } from "../transactions/transaction.js";

export interface VerifyBlocksDeps {
  readonly store: BlockStore & Pick<ChainStore, "lastNonce" | "checkListed">;
  readonly genesis: Genesis;
  /** Checks that the state contains the changes of a block. Throws CorruptionError. */
  readonly checkExecution: (block: VerifiedBlock) => Promise<void>;
}

/**
 * Scans the blocks in ascending order.
 *
 * @param from number of the first block. Default: 1.
 */
export async function* verifyBlocks(deps: VerifyBlocksDeps, from = 1n): Verification {
  const { genesis } = deps;
  let previousHash: string | undefined = from === 1n ? genesis.hash : undefined;
  const head = await deps.store.latestNumber();
  const findings = await runCheck("the latest block", async () => {
    await deps.store.head();
    if ((await deps.store.genesisHash()) !== genesis.hash) {
      throw new CorruptionError("Block 0 in the database does not have the hash of the genesis that it holds.");
    }
  });
  yield { kind: "blocks", done: 0, total: Number(head), findings };
  for (let number = from; number <= head; number++) {
    let checked = await checkBlock(deps, number, previousHash);
    if (checked.findings.length > 0 && number < (await deps.store.lowestBlock())) {
      // The block was pruned during the check; check its header instead.
      checked = await checkBlock(deps, number, previousHash);
    }
    previousHash = checked.hash;
    const [done, total] = [Number(number - from) + 1, Number(head - from) + 1];
    yield { kind: "blocks", done, total, findings: checked.findings };
  }
}

/**
 * Checks one block, or only its header if its transactions are not retained. Returns the hash of an intact block.
 *
 * @param previousHash hash of the previous block; undefined if unknown.
 */
async function checkBlock(deps: VerifyBlocksDeps, number: bigint, previousHash: string | undefined) {
  const { store, genesis } = deps;
  let block: VerifiedBlock | undefined;
  let hash: string | undefined;
  const findings = await runCheck(`block ${number}`, async () => {
    let header: BlockHeader;
    if (number < (await store.lowestBlock())) {
      const stored = requireBlock(number, await store.header(number));
      header = await reportInvalid(number, () => verifyHeader(stored, { network: genesis.hash }));
      ({ hash } = stored);
    } else {
      const stored = requireBlock(number, await store.block(number));
      const rules = { network: genesis.hash, checkOperation: () => undefined };
      block = await reportInvalid(number, () => verifyBlock(stored.block, rules));
      ({ header, hash } = block);
    }
    if (!genesis.authorities.includes(header.proposer)) {
      throw notSigned(number);
    }
    if (previousHash !== undefined && header.previousHash !== previousHash) {
      throw new CorruptionError(`Block ${number} in the database does not come after block ${number - 1n} there.`);
    }
  });
  if (findings.length > 0 || block === undefined) {
    return { findings, hash: findings.length > 0 ? undefined : hash };
  }
  // Reported under a name of their own, because a later successful read of the block does not refute these findings.
  return { findings: await runCheck(`data of block ${number}`, () => verifyRelated(deps, block!)), hash };
}

function requireBlock<T>(number: bigint, stored: T | undefined): T {
  if (stored === undefined) {
    throw new CorruptionError(`Block ${number} is missing in the database.`);
  }
  return stored;
}

/** Checks that each index contains the block and its transactions, and that the state contains their changes. */
async function verifyRelated({ store, checkExecution }: VerifyBlocksDeps, block: VerifiedBlock): Promise<void> {
  const { transactions } = block;
  const { number } = block.header;
  if ((await store.blockSize({ hash: block.hash }))?.number !== number) {
    throw new CorruptionError(`Block ${number} in the database is not found by its hash.`);
  }
  const hashes = transactions.map(({ hash }) => hash);
  if ((await store.included(hashes)).size !== hashes.length) {
    throw new CorruptionError(`Transactions of block ${number} in the database are not found by their hashes.`);
  }
  for (const sender of new Set(transactions.map(({ body }) => body.sender))) {
    const nonce = transactions.findLast(({ body }) => body.sender === sender)!.body.nonce;
    if (((await store.lastNonce(sender)) ?? -1n) < nonce) {
      throw new CorruptionError(`The database lacks nonces of senders in block ${number}.`);
    }
  }
  await store.checkListed(number, transactions);
  await checkExecution(block);
}

/** Runs the verification of a block, and throws a CorruptionError if the block is invalid. */
async function reportInvalid<T>(number: bigint, verify: () => T | Promise<T>): Promise<T> {
  try {
    return await verify();
  } catch (error) {
    throw error instanceof RpcError ? notSigned(number) : error;
  }
}
