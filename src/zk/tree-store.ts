/** The commitment tree in the database. */
import { CorruptionError } from "../base/errors/corruption.js";
import { createLruCache } from "../base/caches/lru-cache.js";
import { prepareBatch } from "../db/rows/batch.js";
import { insertRows } from "../db/rows/bulk-changes.js";
import type { Queries } from "../db/queries/database.js";
import type { Dialect } from "../db/queries/dialects.js";
import { hashRootRow, type RootColumns } from "../db/rows/row-hashes.js";
import { rootOfPath } from "./fold.js";
import {
  type BlockMoment,
  knownBlocks,
  knownMinutes,
  type MerklePath,
  type MerkleRoot,
  type MerkleTree,
  type TreeChanges,
} from "./merkle-tree.js";
import { emptyNodes, hashPair, toHex, treeDepth } from "./poseidon.js";

const hashBytes = 32;
/** Pairs of children whose hash is remembered, of about 300 bytes each: a hash takes 40 µs, and a path has 20. */
const keptPairs = 8_192;
/** The lowest level of such pairs: below it hardly any two paths meet. */
const pairsMeetAt = 7;
/** Positions of a level; a node's id is its level times this plus its position. */
const levelSize = 2 ** (treeDepth + 1);
const knownMs = knownMinutes * 60_000;
/** Where a node is stored. */
export const nodeId = (level: number, position: number): number => level * levelSize + position;

/** The newest block, as SQL. */
export const newestBlock = {
  number: "(SELECT max(number) FROM blocks)",
  timeMs: "(SELECT timestamp_ms FROM blocks ORDER BY number DESC LIMIT 1)",
};

/** A block whose number and time are given, as SQL with a question mark for each. */
const givenBlock: typeof newestBlock = { number: "CAST(? AS bigint)", timeMs: "CAST(? AS bigint)" };

/**
 * The block of the oldest root that is known, as SQL. A root counts until the next one comes: so it is the one that was
 * current after the first of the last blocks, or at the beginning of the last minutes, whichever is older.
 *
 * @param newest the newest block as SQL; its number is asked for first, and then its time.
 */
export function oldestKnownAt({ greater, lesser }: Dialect, newest: typeof newestBlock): string {
  const firstBlock = greater(`${newest.number} - ${knownBlocks - 1}`, "0");
  const byBlocks = `(SELECT max(block_number) FROM merkle_roots WHERE block_number <= ${firstBlock})`;
  const byTime = `(SELECT block_number FROM merkle_roots WHERE timestamp_ms < ${newest.timeMs} - ${knownMs}
    ORDER BY timestamp_ms DESC, block_number DESC LIMIT 1)`;
  return lesser(byBlocks, `coalesce(${byTime}, 0)`);
}

/** The values of {@link givenBlock}. */
const valuesOf = ({ number, timeMs }: BlockMoment): [number, number] => [Number(number), timeMs];

export type RootRow = RootColumns & { readonly edge: Buffer; readonly row_hash: string };

export const rootColumns = "block_number, root, timestamp_ms, leaf_count, edge, row_hash";
const newestRoot = `SELECT ${rootColumns} FROM merkle_roots ORDER BY block_number DESC LIMIT 1`;
const insertedRootColumns = {
  ...({ block_number: "integer", root: "text", timestamp_ms: "integer", leaf_count: "integer" } as const),
  ...({ edge: "bytes", row_hash: "text" } as const),
};

/** Without a root where that is not known. */
type PathRow = { readonly [name in keyof RootRow]: name extends "root" ? string | null : RootRow[name] } & {
  readonly slot: number;
  readonly leaf_index: number | null;
  /** `level:hash` of each node that is stored of those beside the path. */
  readonly nodes: string | null;
};

/** Builds the reads. */
export function createTreeStore(db: Queries): MerkleTree {
  const { dialect, prepare } = db;
  const { bytesOf, hexOf, joinTexts } = dialect;
  // Here, while the node boots: nobody who asks for a path waits for the hash to be compiled.
  const emptySiblings = emptyNodes().slice(0, treeDepth).map(toHex);
  const hash = createPairHash();
  const newest = prepare<RootRow>(newestRoot);
  const after = prepare<RootRow>(
    `SELECT ${rootColumns} FROM merkle_roots
      WHERE block_number <= ? AND CAST(? AS bigint) <= ${newestBlock.number}
        AND (CAST(? AS bigint) > ${newestBlock.number} - ${knownBlocks}
          OR (SELECT timestamp_ms FROM blocks WHERE number = CAST(? AS bigint) + 1) >= ${newestBlock.timeMs} - ${knownMs})
      ORDER BY block_number DESC LIMIT 1`,
  );
  const levels = Array.from({ length: treeDepth }, (_, level) => `(${level})`).join(", ");
  const findPath = prepareBatch<PathRow>(
    db,
    ({ table, slot }) => `WITH l(level) AS (VALUES ${levels})
      SELECT ${slot} AS slot, c.leaf_index, ${rootColumns.replace(/\w+/g, "r.$&")},
        (SELECT ${joinTexts(`l.level || ':' || ${hexOf("n.hash")}`)} FROM l JOIN merkle_nodes n
          ON n.id = l.level * ${levelSize} + (c.leaf_index >> l.level) + 1 - 2 * ((c.leaf_index >> l.level) & 1)) AS nodes
      FROM ${table}
      LEFT JOIN commitments c ON c.commitment = ${bytesOf("k.value ->> 0")}
      LEFT JOIN merkle_roots r ON r.block_number = CASE WHEN k.value ->> 1 = ''
        THEN (SELECT max(block_number) FROM merkle_roots)
        ELSE (SELECT block_number FROM merkle_roots
          WHERE root = k.value ->> 1 AND block_number >= ${oldestKnownAt(dialect, newestBlock)}) END`,
    // All of them are followed to their roots in one turn of the event loop, each by hashes of 40 µs.
    { maxKeys: 16 },
  );
  return {
    async root() {
      const [row] = await newest();
      return toRoot(row!);
    },

    async rootAfter(blockNumber) {
      if (blockNumber > BigInt(Number.MAX_SAFE_INTEGER)) {
        return undefined;
      }
      const number = Number(blockNumber);
      const [row] = await after(number, number, number, number);
      return row && toRoot(row);
    },

    async path(commitment, root = "") {
      const row = (await findPath([commitment.slice(2), root]))!;
      if (row.root === null || row.leaf_index === null) {
        return { missing: row.leaf_index === null ? "commitment" : "root" };
      }
      const { leaf_count } = checkRoot({ ...row, root: row.root });
      if (row.leaf_index >= leaf_count) {
        return { missing: "commitment under this root" };
      }
      const path = toPath(row, row.leaf_index, row.root, emptySiblings);
      if (
        path === undefined ||
        toHex(rootOfPath(BigInt(commitment), path.siblings.map(BigInt), path.pathIndices, hash)) !== row.root
      ) {
        throw new CorruptionError(
          `The path of commitment ${commitment} in the database does not lead to the root ${row.root}: nodes of the tree are not what was stored.`,
        );
      }
      return { commitment, ...path };
    },
  };
}

/** Builds the changes, inside the transaction of a block; what they read may be read outside of one as well. */
export function createTreeChanges(db: Queries): TreeChanges {
  const { dialect } = db;
  /** Whether commitments were in the tree before the block. */
  const expected = new Map<string, boolean>();
  const findNewest = db.prepare<RootRow>(newestRoot);
  const findNodes = db.prepare<{ id: number; hash: Buffer }>(
    `SELECT n.id, n.hash FROM ${dialect.list.table}
      CROSS JOIN merkle_nodes AS n WHERE n.id = CAST(${dialect.list.text} AS bigint)`,
  );
  const forgetRoots = db.prepare(`DELETE FROM merkle_roots WHERE block_number < ${oldestKnownAt(dialect, givenBlock)}`);
  const rootIsKnown = db.prepare(
    `SELECT 1 FROM merkle_roots WHERE root = ? AND block_number >= ${oldestKnownAt(dialect, givenBlock)}`,
  );

  return {
    async expect(commitments) {
      const found = await findCommitments(db, commitments);
      commitments.forEach((commitment) => expected.set(commitment, found.has(commitment)));
    },

    has: async (commitment) => expected.get(commitment) ?? (await findCommitments(db, [commitment])).has(commitment),

    async isKnownRoot(root, { number, timeMs }) {
      return (await rootIsKnown(root, ...valuesOf({ number: number - 1n, timeMs }))).length > 0;
    },

    async newest() {
      const [row] = await findNewest();
      return toRoot(row!);
    },

    async peaks(leafCount) {
      const levels = new Map<number, number>();
      for (let level = 0; level <= treeDepth; level++) {
        const complete = Math.floor(leafCount / 2 ** level);
        if (complete % 2 === 1) {
          levels.set(nodeId(level, complete - 1), level);
        }
      }
      const rows = await findNodes(JSON.stringify([...levels.keys()]));
      return Object.fromEntries(rows.map(({ id, hash }) => [levels.get(id)!, BigInt(`0x${hash.toString("hex")}`)]));
    },

    async insertNodes(runs) {
      const leaves = runs[0]!;
      const hexOf = (node: bigint): string => toHex(node).slice(2);
      await insertRows(
        db,
        "commitments",
        { commitment: "bytes", leaf_index: "integer" },
        leaves.hashes.map((leaf, i) => [hexOf(leaf), leaves.position + i]),
      );
      await insertRows(
        db,
        "merkle_nodes",
        { id: "integer", hash: "bytes" },
        runs.flatMap(({ level, position, hashes }) =>
          hashes.map((node, i) => [nodeId(level, position + i), hexOf(node)]),
        ),
      );
    },

    async insertRoot({ root, block, leafCount, edge }) {
      const [number, timeMs] = valuesOf(block);
      const bytes = Buffer.concat(edge.map((node) => toBytes(toHex(node))));
      const row = { block_number: number, root, timestamp_ms: timeMs, leaf_count: leafCount, edge: bytes };
      await insertRows(db, "merkle_roots", insertedRootColumns, [
        [number, root, timeMs, leafCount, bytes.toString("hex"), hashRootRow(row)],
      ]);
      await forgetRoots(number, timeMs);
    },
  };
}

/** Those of these commitments that are in the tree. */
async function findCommitments(db: Queries, commitments: readonly string[]): Promise<Set<string>> {
  const { list, bytesOf } = db.dialect;
  const find = db.prepare<{ commitment: string }>(
    `SELECT ${list.text} AS commitment FROM ${list.table}
      CROSS JOIN commitments c WHERE c.commitment = ${bytesOf(`substr(${list.text}, 3)`)}`,
  );
  const rows = commitments.length === 0 ? [] : await find(JSON.stringify(commitments));
  return new Set(rows.map(({ commitment }) => commitment));
}

/** Throws DamageError for a root that is not the one that was stored. */
export function checkRoot(row: RootRow): RootRow {
  if (row.row_hash !== hashRootRow(row)) {
    throw new CorruptionError(
      `The root of the commitment tree after block ${row.block_number} in the database is not what was stored.`,
    );
  }
  return row;
}

/** Hashes pairs of children; where paths meet, the hash of one and the same pair is remembered. */
function createPairHash(): (left: bigint, right: bigint, level: number) => bigint {
  const known = createLruCache<bigint>(keptPairs);
  return (left, right, level) => {
    if (level < pairsMeetAt) {
      return hashPair(left, right);
    }
    const key = `${left.toString(36)} ${right.toString(36)}`;
    const hash = known.get(key) ?? hashPair(left, right);
    known.set(key, hash);
    return hash;
  };
}

function toRoot(row: RootRow): MerkleRoot {
  checkRoot(row);
  return { root: row.root, blockNumber: BigInt(row.block_number), leafCount: row.leaf_count };
}

function toPath(
  { leaf_count: leafCount, edge, nodes, block_number }: PathRow,
  leafIndex: number,
  root: string,
  emptySiblings: readonly string[],
): Omit<MerklePath, "commitment"> | undefined {
  const stored = new Map<number, string>();
  for (const node of nodes?.split(",") ?? []) {
    const [level, hash] = node.split(":") as [string, string];
    stored.set(Number(level), `0x${hash}`);
  }
  const siblings = emptySiblings.map((empty, level) => {
    const position = Math.floor(leafIndex / 2 ** level);
    const first = (position % 2 === 0 ? position + 1 : position - 1) * 2 ** level;
    if (first >= leafCount) {
      return empty;
    }
    // A node that is stored may be newer than the root: it is complete under it only when its last leaf is there.
    return first + 2 ** level <= leafCount ? stored.get(level) : edgeHash(edge, level);
  });
  if (!siblings.every((sibling) => sibling !== undefined)) {
    return undefined;
  }
  return {
    leafIndex,
    siblings,
    pathIndices: siblings.map((_, level) => Math.floor(leafIndex / 2 ** level) % 2),
    root,
    blockNumber: BigInt(block_number),
  };
}

function edgeHash(edge: Buffer, level: number): string {
  return `0x${edge.subarray((level - 1) * hashBytes, level * hashBytes).toString("hex")}`;
}

function toBytes(hash: string): Buffer {
  return Buffer.from(hash.slice(2), "hex");
}
