/**
 * Verifies the stored commitment tree and nullifiers: every node against its children, and every root against its
 * block.
 */
import { CorruptionError } from "../base/errors/corruption.js";
import { runCheck, type Verification, verifyRows } from "../base/errors/verification.js";
import { yieldToEventLoop } from "../base/async/yielding.js";
import type { Queries } from "../db/queries/database.js";
import type { NullifierColumns } from "../db/rows/row-hashes.js";
import { rootOf } from "./fold.js";
import { checkNullifier } from "./nullifier-store.js";
import { childrenOf, createNodeStore, hashOfChildren, nodeIn, pagesOf } from "./node-store.js";
import { treeDepth } from "./poseidon.js";
import { checkRoot, createTreeChanges, rootColumns, type RootRow } from "./tree-store.js";

/** Statements of the blocks and the state tree about the commitment tree and the nullifiers. */
export interface ZkWitness {
  /**
   * Returns the root in a block's header.
   *
   * @throws CorruptionError if there is no such block.
   */
  rootOf(blockNumber: bigint): Promise<string | undefined>;
  /** Returns the block that contains a transaction; undefined if no retained block does. */
  blockOf(transactionHash: string): Promise<bigint | undefined>;
  lowestBlock(): Promise<bigint>;
  /**
   * Checks that the state tree contains a nullifier with its stored values.
   *
   * @throws CorruptionError
   */
  checkNullifier(hash: string): Promise<void>;
  /**
   * Checks that the state tree contains the stored commitment tree.
   *
   * @throws CorruptionError
   */
  checkCommitments(): Promise<void>;
}

/** Scans roots, nodes and nullifiers. */
export async function* verifyZk(db: Queries, witness: ZkWitness): Verification {
  const leafCount = yield* verifyRoots(db, witness);
  yield* verifyNodes(db, leafCount);
  yield* verifyNullifiers(db, witness);
}

/** Verifies all roots. Returns the number of leaves under the latest root. */
async function* verifyRoots(db: Queries, witness: ZkWitness) {
  const rows = await db.rows<RootRow>((sql) =>
    sql("merkle_roots").orderBy("block_number").select(sql.raw(rootColumns)),
  );
  for (const [i, row] of rows.entries()) {
    const subject = `the root of the commitment tree after block ${row.block_number}`;
    const findings = await runCheck(subject, async () => {
      checkRoot(row);
      if (row.block_number > 0 && (await witness.rootOf(BigInt(row.block_number))) !== row.root) {
        throw new CorruptionError(
          `The root of the commitment tree after block ${row.block_number} in the database is not the one in the block's header.`,
        );
      }
    });
    yield { kind: "roots" as const, done: i + 1, total: rows.length, findings };
  }
  const latest = rows.at(-1);
  if (latest === undefined) {
    return 0;
  }
  const { leaf_count: leafCount, root } = latest;
  const findings = await runCheck("the commitment tree", async () => {
    if (rootOf(leafCount, await createTreeChanges(db).peaks(leafCount)) !== root) {
      throw new CorruptionError("The nodes of the commitment tree in the database do not lead to its latest root.");
    }
    await witness.checkCommitments();
  });
  yield { kind: "roots" as const, done: rows.length, total: rows.length, findings };
  return leafCount;
}

/** Number of nodes that are checked together; hashing them takes a few milliseconds. */
const batchNodes = 64;

async function* verifyNodes(db: Queries, leafCount: number): Verification {
  const { load } = createNodeStore(db);
  const leavesAt = db.prepare<{ slot: number; leaf_index: number }>(
    `SELECT ${db.dialect.list.slot} AS slot, c.leaf_index FROM ${db.dialect.list.table}
      CROSS JOIN commitments c WHERE c.commitment = ${db.dialect.bytesOf(`substr(${db.dialect.list.text}, 3)`)}`,
    "list",
  );
  const counts = Array.from({ length: treeDepth }, (_, level) => Math.floor(leafCount / 2 ** level));
  const total = counts.reduce((sum, count) => sum + count, 0);
  let done = 0;
  for (const [level, count] of counts.entries()) {
    for (let from = 0; from < count; from += batchNodes) {
      const nodes = Array.from({ length: Math.min(count - from, batchNodes) }, (_, i) => [level, from + i] as const);
      const findings = await runCheck(`nodes of the commitment tree on level ${level}, from ${from} on`, async () => {
        const children = nodes.flatMap(([, at]) => (level === 0 ? [] : childrenOf(level, at)));
        const pages = await load(pagesOf([...nodes, ...children]));
        const hashes = nodes.map((node) => nodeIn(pages, ...node));
        const stored = new Map(
          (level === 0 ? await leavesAt(JSON.stringify(hashes)) : []).map((row) => [row.slot, row.leaf_index]),
        );
        for (const [i, hash] of hashes.entries()) {
          const isCorrect =
            level === 0
              ? stored.get(i) === from + i
              : hash !== undefined && hash === hashOfChildren(pages, ...nodes[i]!);
          if (!isCorrect) {
            throw new CorruptionError(
              `Nodes of the commitment tree in the database are corrupt: on level ${level}, between ${from} and ${from + hashes.length - 1}.`,
            );
          }
          if (i % 16 === 15) {
            await yieldToEventLoop();
          }
        }
      });
      done += nodes.length;
      yield { kind: "nodes", done, total, findings };
    }
  }
}

const batchNullifiers = 100;

type NullifierRow = NullifierColumns & { readonly row_hash: string };

function verifyNullifiers(db: Queries, witness: ZkWitness): Verification {
  return verifyRows({
    kind: "nullifiers",
    count: async () =>
      (await db.first<{ count: number }>((sql) => sql("nullifiers").count({ count: "*" })))?.count ?? 0,
    after: db.prepare<NullifierRow>(
      `SELECT hash, block_number, transaction_hash, row_hash FROM nullifiers WHERE hash > ?
        ORDER BY hash LIMIT ${batchNullifiers}`,
      "list",
    ),
    keyOf: ({ hash }) => hash,
    nameOf: ({ hash }) => `the nullifier ${hash}`,
    async check(row) {
      const storedBlock = BigInt(row.block_number);
      const block = await witness.blockOf(row.transaction_hash);
      const isConfirmed = block === storedBlock || (block === undefined && storedBlock < (await witness.lowestBlock()));
      checkNullifier(row);
      if (!isConfirmed) {
        throw new CorruptionError(`The nullifier ${row.hash} in the database is corrupt.`);
      }
      await witness.checkNullifier(row.hash);
    },
  });
}
