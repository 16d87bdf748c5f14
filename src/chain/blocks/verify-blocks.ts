/** Scan that verifies all stored blocks: signatures, chain of hashes, indexes and changes of the state. */
import type { BlockHeader } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { CorruptionError } from "../../base/errors/corruption.js";
import { type Finding, runCheck, type Verification } from "../../base/errors/verification.js";
import { RpcError } from "../../rpc/errors.js";
import type { Genesis } from "./genesis.js";
import { notSigned } from "./stored-block.js";
import type { ChainStore } from "./store.js";
import { type VerifiedBlock, verifyBlock, verifyHeader } from "../transactions/transaction.js";

export interface VerifyBlocksDeps {
  readonly store: Pick<
    ChainStore,
    "head" | "block" | "header" | "lowestBlock" | "blockSize" | "included" | "lastNonce" | "checkListed"
  > & {
    /** Returns the highest block number, without verifying its row, and at most the number of rows. */
    latestNumber(): Promise<bigint>;
    genesisHash(): Promise<string | undefined>;
  };
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
  yield { kind: "blocks", done: 0, total: Number(head), findings: await checkHead(deps) };
  for (let number = from; number <= head; number++) {
    let { findings, hash } = await checkBlock(deps, number, previousHash);
    if (findings.length > 0 && number < (await deps.store.lowestBlock())) {
      // The block was pruned during the check; check its header instead.
      ({ findings, hash } = await checkBlock(deps, number, previousHash));
    }
    previousHash = hash;
    yield { kind: "blocks", done: Number(number - from) + 1, total: Number(head - from) + 1, findings };
  }
}

/** Checks one block, or only its header if its transactions are not retained. Returns the hash of an intact block. */
async function checkBlock(deps: VerifyBlocksDeps, number: bigint, previousHash: string | undefined) {
  let block: VerifiedBlock | undefined;
  let hash: string | undefined;
  const findings = await runCheck(`block ${number}`, async () => {
    if (number < (await deps.store.lowestBlock())) {
      hash = await verifyStoredHeader(deps, number, previousHash);
      return;
    }
    block = await verifyStoredBlock(deps, number, previousHash);
    hash = block.hash;
  });
  // Reported under a name of their own, because a later successful read of the block does not refute these findings.
  const related =
    block === undefined ? [] : await runCheck(`what block ${number} leads to`, () => verifyRelated(deps, block!));
  return { findings: [...findings, ...related], hash };
}

/** Checks that the latest block and block 0 can be read. */
function checkHead({ store, genesis }: VerifyBlocksDeps): Promise<Finding[]> {
  return runCheck("the newest block", async () => {
    await store.head();
    if ((await store.genesisHash()) !== genesis.hash) {
      throw new CorruptionError("Block 0 in the database does not have the hash of the genesis that it holds.");
    }
  });
}

/**
 * Verifies a block with its transactions.
 *
 * @param previousHash hash of the previous block; undefined if unknown.
 */
async function verifyStoredBlock(
  { store, genesis }: VerifyBlocksDeps,
  number: bigint,
  previousHash: string | undefined,
): Promise<VerifiedBlock> {
  const stored = requireBlock(number, await store.block(number));
  const block = await reportInvalid(number, () =>
    verifyBlock(stored.block, { network: genesis.hash, checkOperation: () => undefined }),
  );
  checkSuccession(genesis, block.header, previousHash);
  return block;
}

/** Verifies the header of a block whose transactions are not retained; returns its hash. */
async function verifyStoredHeader(
  { store, genesis }: VerifyBlocksDeps,
  number: bigint,
  previousHash: string | undefined,
): Promise<string> {
  const stored = requireBlock(number, await store.header(number));
  const header = await reportInvalid(number, () => verifyHeader(stored, { network: genesis.hash }));
  checkSuccession(genesis, header, previousHash);
  return stored.hash;
}

function requireBlock<T>(number: bigint, stored: T | undefined): T {
  if (stored === undefined) {
    throw new CorruptionError(`Block ${number} is missing in the database.`);
  }
  return stored;
}

/** Checks that an authority proposed the block, and that its header names the previous block. */
function checkSuccession(genesis: Genesis, header: BlockHeader, previousHash: string | undefined): void {
  const { number, proposer } = header;
  if (!genesis.authorities.includes(proposer)) {
    throw notSigned(number);
  }
  if (previousHash !== undefined && header.previousHash !== previousHash) {
    throw new CorruptionError(`Block ${number} in the database does not come after block ${number - 1n} there.`);
  }
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
