/** Verifies all stored data of the chain and of its state, in portions. */
import { CorruptionError, messageFor } from "../../base/errors/corruption.js";
import { isDatabaseCorruption } from "../../base/errors/database-error-kind.js";
import {
  runCheck,
  type Verification,
  type VerifiedKind,
  type VerifiedPortion,
} from "../../base/errors/verification.js";
import { createListings } from "../../chain/blocks/listing-store.js";
import { createBlockStore } from "../../chain/blocks/block-store.js";
import type { Genesis } from "../../chain/blocks/genesis.js";
import { createSenderStore, verifySenders } from "../../chain/blocks/sender-store.js";
import { decodeHeader, type VerifiedBlock } from "../../chain/transactions/transaction.js";
import { verifyBlocks, type VerifyBlocksDeps } from "../../chain/blocks/verify-blocks.js";
import type { DatabasePart, Queries } from "../../db/queries/database.js";
import { verifyPrograms } from "../../storage/stores/verify-store.js";
import { targetAddress } from "../../base/program-address.js";
import { verifyZk } from "../../zk/verify-store.js";
import { wasCreated } from "../../storage/stores/program-state-store.js";
import { createNullifierStore } from "../../zk/nullifier-store.js";
import { createTreeChanges } from "../../zk/tree-store.js";
import { findProofs, type RequestedItems } from "../../state/service.js";
import { createStateReads, toProvenBlock } from "../chain/state.js";

export interface VerifyDataDeps {
  readonly database: Pick<DatabasePart, "read" | "inspect">;
  readonly genesis: Genesis;
}

/** Verifies only the latest blocks: clients request them most, and a power loss may have corrupted them. */
export async function* verifyLatest({ database: { read }, genesis }: VerifyDataDeps, count: bigint): Verification {
  const blockDeps = createBlockDeps(read, genesis);
  const head = await blockDeps.store.latestNumber();
  yield* reportCorruptStep("blocks", verifyBlocks(blockDeps, head > count ? head - count + 1n : 1n));
}

export async function* verifyAll({ database, genesis }: VerifyDataDeps): Verification {
  const { read } = database;
  yield { kind: "blocks", done: 0, total: 0, findings: await checkIntegrity(database) };
  const blockDeps = createBlockDeps(read, genesis);
  const checkState = createStateCheck(read);
  const findings = await runCheck("the transactions", () => blockDeps.store.checkTransactionBlocks());
  yield { kind: "blocks", done: 0, total: 0, findings };
  yield* reportCorruptStep("blocks", verifyBlocks(blockDeps));
  const zk = verifyZk(read, {
    async rootOf(number) {
      const stored = await blockDeps.store.header(number);
      return stored && decodeHeader(stored.header).commitmentRoot;
    },
    blockOf: (hash) => blockDeps.store.blockOf(hash),
    lowestBlock: () => blockDeps.store.lowestBlock(),
    checkNullifier: (hash) => checkState(`the nullifier ${hash}`, { nullifiers: [hash] }),
    checkCommitments: () => checkState("the commitment tree", { withCommitments: true }),
  });
  yield* reportCorruptStep("nodes", zk);
  yield* reportCorruptStep(
    "senders",
    verifySenders(read, (sender) => checkState(`the sender ${sender}`, { senders: [sender] })),
  );
  yield* reportCorruptStep(
    "programs",
    verifyPrograms(read, (address) => checkState(`the storage program ${address}`, { address })),
  );
}

const noItems: RequestedItems = {
  ...{ address: undefined, fields: [], withDocument: false, withMetadata: false },
  ...{ nullifiers: [], senders: [], withCommitments: false },
};

/** Limit on findings. With more, the tree or a table is corrupt, and further findings add no information. */
const maxFindings = 100;

/**
 * Creates the check of stored rows against the state root of the latest header, by current proofs. The check throws
 * CorruptionError if an item is missing in the state, or differs there.
 */
function createStateCheck(read: Queries) {
  let findings = 0;
  const blocks = createBlockStore(read);
  const reads = createStateReads(read);
  const rules = { isLatest: () => true, mayRead: () => undefined };
  return async (subject: string, items: Partial<RequestedItems>): Promise<void> => {
    // A block that is stored during the read changes the state, so the read is repeated.
    for (let checkedHash: string | undefined; findings <= maxFindings;) {
      const head = await blocks.head();
      if (head === undefined) {
        return;
      }
      if ((await findProofs(reads, toProvenBlock(head.number, head), { ...noItems, ...items }, rules)) !== undefined) {
        return;
      }
      if (head.hash === checkedHash) {
        findings++;
        throw new CorruptionError(
          `The stored data of ${subject} does not match the state root of block ${head.number}.`,
        );
      }
      checkedHash = head.hash;
    }
  };
}

/** Runs the integrity check of the database engine. */
async function checkIntegrity({ inspect }: Pick<DatabasePart, "inspect">) {
  return await runCheck("the database", async () => {
    const [first, ...others] = await inspect();
    if (first !== undefined) {
      const more = others.length === 0 ? "" : `, and ${others.length} more`;
      throw new CorruptionError(`The database reports that it is corrupt: ${first}${more}.`);
    }
  });
}

function createBlockDeps(read: Queries, genesis: Genesis) {
  const senders = createSenderStore(read);
  const store = { ...createBlockStore(read), lastNonce: (sender: string) => senders.lastNonce(sender) };
  const checkExecution = async ({ header, transactions }: VerifiedBlock): Promise<void> => {
    for (const { hash, body } of transactions) {
      if (!(await hasStoredResult(read, body, { hash, number: header.number }))) {
        throw new CorruptionError(
          `The result of transaction ${hash} of block ${header.number} is missing in the database, or differs.`,
        );
      }
    }
  };
  return { store: { ...store, ...createListings(read) }, genesis, checkExecution } satisfies VerifyBlocksDeps;
}

/**
 * Returns true if the results of a transaction are stored. Does not check data that later transactions may have
 * changed.
 */
async function hasStoredResult(
  read: Queries,
  body: VerifiedBlock["transactions"][number]["body"],
  { hash, number }: { readonly hash: string; readonly number: bigint },
): Promise<boolean> {
  if (body.operation.case === "storage") {
    const address = targetAddress(body.operation.value, body);
    return address === undefined || (await wasCreated(read, address));
  }
  const operation = body.operation.case === "zk" ? body.operation.value.operation : undefined;
  switch (operation?.case) {
    case "addCommitment":
      return await createTreeChanges(read).has(operation.value.commitment);
    case "spendNullifier": {
      const { use } = await createNullifierStore(read).find(operation.value.nullifierHash);
      return use?.transactionHash === hash && use.blockNumber === number;
    }
    case undefined:
      return true;
  }
}

/**
 * Continues a scan of one kind to its end. If corruption prevents the step to the next portion, reports it as a finding
 * and ends the scan.
 */
async function* reportCorruptStep(kind: VerifiedKind, verification: Verification): Verification {
  let progress: Pick<VerifiedPortion, "done" | "total"> = { done: 0, total: 0 };
  try {
    for await (const portion of verification) {
      progress = portion.kind === kind ? portion : progress;
      yield portion;
    }
  } catch (error) {
    if (!isDatabaseCorruption(error)) {
      throw error;
    }
    const what = `the scan of the ${kind}`;
    const { done, total } = progress;
    yield { kind, done, total, findings: [{ what, sentence: messageFor(error, what) }] };
  }
}
