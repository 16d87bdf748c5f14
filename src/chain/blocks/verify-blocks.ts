/** Scan that verifies all stored blocks: signatures, chain of hashes, indexes and effects on the state. */
import type { BlockHeader } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { CorruptionError } from "../../base/errors/corruption.js";
import { type Finding, runCheck, type Verification } from "../../base/errors/verification.js";
import { RpcError } from "../../rpc/errors.js";
import type { Genesis } from "./genesis.js";
import { notSigned } from "./stored-block.js";
import type { ChainStore } from "./store.js";
import { type VerifiedBlock, verifyBlock, readHeader } from "../transactions/transaction.js";

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
  /** Checks the effects of a block on the state. Throws CorruptionError. */
  readonly checkExecution: (block: VerifiedBlock) => Promise<void>;
}

/**
 * Scans the blocks in ascending order.
 *
 * @param from number of the first block. Default: 1.
 */
export async function* verifyBlocks(deps: VerifyBlocksDeps, from = 1n): Verification {
  const { genesis } = deps;
  let before: string | undefined = from === 1n ? genesis.hash : undefined;
  const { found, head } = await findHead(deps);
  yield { kind: "blocks", done: 0, total: Number(head), findings: found };
  for (let number = from; number <= head; number++) {
    let { findings, hash } = await inspectBlock(deps, number, before);
    if (findings.length > 0 && number < (await deps.store.lowestBlock())) {
      // The block was pruned during the check; check its header instead.
      ({ findings, hash } = await inspectBlock(deps, number, before));
    }
    before = hash;
    yield { kind: "blocks", done: Number(number - from) + 1, total: Number(head - from) + 1, findings };
  }
}

/** Checks one block, or only its header if its transactions are not retained. Returns the hash of an intact block. */
async function inspectBlock(deps: VerifyBlocksDeps, number: bigint, previous: string | undefined) {
  let block: VerifiedBlock | undefined;
  let hash: string | undefined;
  const findings = await runCheck(`block ${number}`, async () => {
    if (number < (await deps.store.lowestBlock())) {
      hash = await verifyHeader(deps, number, previous);
      return;
    }
    block = await verifyStored(deps, number, previous);
    hash = block.hash;
  });
  // Reported under a separate name, because a successful read of the block by number does not cover these checks.
  const related =
    block === undefined ? [] : await runCheck(`what block ${number} leads to`, () => verifyRelated(deps, block!));
  return { findings: [...findings, ...related], hash };
}

async function findHead({ store, genesis }: VerifyBlocksDeps): Promise<{ found: Finding[]; head: bigint }> {
  const head = await store.latestNumber();
  const found = await runCheck("the newest block", async () => {
    await store.head();
    if ((await store.genesisHash()) !== genesis.hash) {
      throw new CorruptionError("Block 0 in the database does not have the hash of the genesis that it holds.");
    }
  });
  return { found, head };
}

/**
 * Verifies a block with its transactions.
 *
 * @param previousHash hash of the previous block; undefined if unknown.
 */
async function verifyStored(
  { store, genesis }: VerifyBlocksDeps,
  number: bigint,
  previousHash: string | undefined,
): Promise<VerifiedBlock> {
  const stored = foundBlock(number, await store.block(number));
  const block = await readSigned(number, () =>
    verifyBlock(stored.block, { network: genesis.hash, checkOperation: () => undefined }),
  );
  checkSuccession(genesis, block.header, previousHash);
  return block;
}

/** Verifies the header of a block whose transactions are not retained; returns its hash. */
async function verifyHeader(
  { store, genesis }: VerifyBlocksDeps,
  number: bigint,
  previousHash: string | undefined,
): Promise<string> {
  const stored = foundBlock(number, await store.header(number));
  const header = await readSigned(number, () =>
    Promise.resolve().then(() => readHeader(stored, { network: genesis.hash })),
  );
  checkSuccession(genesis, header, previousHash);
  return stored.hash;
}

function foundBlock<T>(number: bigint, stored: T | undefined): T {
  if (stored === undefined) {
    throw new CorruptionError(`Block ${number} is missing in the database.`);
  }
  return stored;
}

function checkSuccession(
  genesis: Genesis,
  { number, proposer, previousHash: named }: BlockHeader,
  previousHash?: string,
) {
  if (!genesis.authorities.includes(proposer)) {
    throw notSigned(number);
  }
  if (previousHash !== undefined && named !== previousHash) {
    throw new CorruptionError(`Block ${number} in the database does not come after block ${number - 1n} there.`);
  }
}

/** Checks that the block and its transactions can be found by each index, and that their effects are stored. */
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

async function readSigned<T>(number: bigint, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw error instanceof RpcError ? notSigned(number) : error;
  }
}
