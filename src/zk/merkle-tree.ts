/**
 * The commitment tree in the database: every node that is not empty is stored, so a proof is read and never computed,
 * and a boot has nothing to rebuild. Each read is one query, so that a root, its block and a proof belong together.
 */
import { type Database, rowsOf } from "../db/connect.js";
import { emptyNodes, toHex, treeDepth } from "./poseidon.js";

/** A root and when it was. Hashes are 0x and 64 lower-case hex digits. */
export interface MerkleRoot {
  readonly root: string;
  readonly blockNumber: bigint;
  readonly leafCount: number;
}

/** A commitment's path to a root. */
export interface MerklePath {
  readonly leafIndex: number;
  /** The node beside the path on each level, from the leaf upwards. */
  readonly siblings: readonly string[];
  /** On each level, 0 when the path's node is the left one. */
  readonly pathIndices: readonly number[];
  readonly root: string;
  readonly blockNumber: bigint;
}

/** Reads of the tree. */
export interface MerkleTree {
  /** The newest root; the empty tree's at block 0 while there is no leaf. */
  root(): Promise<MerkleRoot>;
  /** The path of a commitment; undefined when it is not in the tree. */
  path(commitment: string): Promise<MerklePath | undefined>;
}

const emptyRoot: MerkleRoot = { root: toHex(emptyNodes[treeDepth]!), blockNumber: 0n, leafCount: 0 };
const emptySiblings = emptyNodes.slice(0, treeDepth).map(toHex);

/** Levels 0 to 19, each with the position of the sibling; nodes that are missing are empty ones. */
const pathQuery = `
  WITH RECURSIVE
    leaf(position) AS (SELECT leaf_index FROM commitments WHERE commitment = ?),
    walk(level, sibling, above) AS (
      SELECT 0, position + 1 - 2 * (position % 2), position / 2 FROM leaf
      UNION ALL
      SELECT level + 1, above + 1 - 2 * (above % 2), above / 2 FROM walk WHERE level < ${treeDepth - 1}
    )
  SELECT walk.level AS level, leaf.position AS leaf_index, node.hash AS hash, latest.root AS root,
    latest.block_number AS block_number
  FROM walk
    CROSS JOIN leaf
    CROSS JOIN (SELECT root, block_number FROM merkle_roots ORDER BY block_number DESC LIMIT 1) AS latest
    LEFT JOIN merkle_nodes AS node ON node.level = walk.level AND node.position = walk.sibling
  ORDER BY walk.level`;

interface PathRow {
  readonly level: number;
  readonly leaf_index: number;
  readonly hash: Buffer | null;
  readonly root: string;
  readonly block_number: number;
}

/** Reads from the database. */
export function createMerkleTree({ read }: Pick<Database, "read">): MerkleTree {
  return {
    async root() {
      const [newest] = (await read("merkle_roots").orderBy("block_number", "desc").limit(1)) as {
        root: string;
        block_number: number;
        leaf_count: number;
      }[];
      return newest === undefined
        ? emptyRoot
        : { root: newest.root, blockNumber: BigInt(newest.block_number), leafCount: newest.leaf_count };
    },

    async path(commitment) {
      const rows = rowsOf<PathRow>(await read.raw(pathQuery, [commitment]));
      const [row] = rows;
      return (
        row && {
          leafIndex: row.leaf_index,
          siblings: rows.map(({ level, hash }) =>
            hash === null ? emptySiblings[level]! : `0x${hash.toString("hex")}`,
          ),
          pathIndices: rows.map(({ level }) => Math.floor(row.leaf_index / 2 ** level) % 2),
          root: row.root,
          blockNumber: BigInt(row.block_number),
        }
      );
    },
  };
}
