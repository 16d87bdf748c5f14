/**
 * The commitment tree in the database. Every complete node is stored once and never changes; a root comes with the nodes
 * on its edge. So a proof for any root that is known is one query, a block's leaves touch each node above them once, and
 * a boot has nothing to rebuild.
 */
import type { Knex } from "knex";
import { listTables, prepareBatch } from "../db/batch.js";
import { type Database, type Engine, rowsOf } from "../db/connect.js";
import { edgeOf, type FoldAll, growTree, type NodeRun, type Peaks, peaksAfter } from "./fold.js";
import { emptyNodes, toHex, treeDepth } from "./poseidon.js";

/** A root and when it was. Hashes are 0x and 64 lower-case hex digits. */
export interface MerkleRoot {
  readonly root: string;
  /** The block that made it. */
  readonly blockNumber: bigint;
  readonly leafCount: number;
}

/** A commitment's path to a root. */
export interface MerklePath {
  readonly commitment: string;
  readonly leafIndex: number;
  /** The node beside the path on each level, from the leaf upwards. */
  readonly siblings: readonly string[];
  /** On each level, 0 when the path's node is the left one. */
  readonly pathIndices: readonly number[];
  readonly root: string;
  readonly blockNumber: bigint;
}

/** What a look for a path gives: the path, or what it lacks. */
export type PathSearch =
  | (MerklePath & { readonly missing?: undefined })
  | { readonly missing: "commitment" | "root" | "commitment under this root" };

export interface MerkleTree {
  /** The newest root. */
  root(): MerkleRoot | Promise<MerkleRoot>;
  /** The root after a block; undefined for a block that is not there yet, or older than those whose roots are known. */
  rootAfter(blockNumber: bigint): Promise<MerkleRoot | undefined>;
  /** The path of a commitment to a root that is known, or to the newest one. */
  path(commitment: string, root: string | undefined): PathSearch | Promise<PathSearch>;
}

/** Roots that were current after one of so many blocks, the newest among them, are known. */
export const knownBlocks = 256;
export const maxLeaves = 2 ** treeDepth;

const hashBytes = 32;
/** Positions of a level; a node's id is its level times this plus its position. */
const levelSize = 2 ** (treeDepth + 1);
const nodeId = (level: number, position: number): number => level * levelSize + position;

/** What the engines say differently. */
const terms = {
  sqlite: {
    bytes: (hex: string) => `unhex(${hex})`,
    nodes: "group_concat(l.level || ':' || lower(hex(n.hash)))",
    greatest: "max",
  },
  postgresql: {
    bytes: (hex: string) => `decode(${hex}, 'hex')`,
    nodes: "string_agg(l.level || ':' || encode(n.hash, 'hex'), ',')",
    greatest: "greatest",
  },
} as const;

/** The block of the oldest root that is known when `head` is the newest block, in an engine's words. */
function oldestKnownIn(engine: Engine, head = "(SELECT max(number) FROM blocks)"): string {
  const since = `${terms[engine].greatest}(${head} - ${knownBlocks - 1}, 0)`;
  return `(SELECT max(block_number) FROM merkle_roots WHERE block_number <= ${since})`;
}

interface RootRow {
  readonly root: string;
  readonly block_number: number;
  readonly leaf_count: number;
}

interface PathRow {
  readonly slot: number;
  readonly leaf_index: number | null;
  readonly root: string | null;
  readonly block_number: number;
  readonly leaf_count: number;
  readonly edge: Buffer;
  /** `level:hash` of each node that is stored of those beside the path. */
  readonly nodes: string | null;
}

/** Reads from the database. */
export function createMerkleTree(database: Pick<Database, "engine" | "prepare">): MerkleTree {
  const { engine, prepare } = database;
  const { bytes, nodes } = terms[engine];
  // Here, while the node boots: nobody who asks for a path waits for the hash to be compiled.
  const emptySiblings = emptyNodes().slice(0, treeDepth).map(toHex);
  const newest = prepare<RootRow>(
    "SELECT root, block_number, leaf_count FROM merkle_roots ORDER BY block_number DESC LIMIT 1",
  );
  const after = prepare<RootRow>(
    `SELECT root, block_number, leaf_count FROM merkle_roots
      WHERE block_number <= ? AND block_number >= ${oldestKnownIn(engine)}
        AND CAST(? AS bigint) <= (SELECT max(number) FROM blocks)
        AND CAST(? AS bigint) > (SELECT max(number) FROM blocks) - ${knownBlocks}
      ORDER BY block_number DESC LIMIT 1`,
  );
  const levels = Array.from({ length: treeDepth }, (_, level) => `(${level})`).join(", ");
  const findPath = prepareBatch<PathRow>(
    database,
    ({ table, slot }) => `WITH l(level) AS (VALUES ${levels})
      SELECT ${slot} AS slot, c.leaf_index, r.root, r.block_number, r.leaf_count, r.edge,
        (SELECT ${nodes} FROM l JOIN merkle_nodes n
          ON n.id = l.level * ${levelSize} + (c.leaf_index >> l.level) + 1 - 2 * ((c.leaf_index >> l.level) & 1)) AS nodes
      FROM ${table}
      LEFT JOIN commitments c ON c.commitment = ${bytes("k.value ->> 0")}
      LEFT JOIN merkle_roots r ON r.block_number = CASE WHEN k.value ->> 1 = ''
        THEN (SELECT max(block_number) FROM merkle_roots)
        ELSE (SELECT block_number FROM merkle_roots
          WHERE root = k.value ->> 1 AND block_number >= ${oldestKnownIn(engine)}) END`,
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
      const [row] = await after(number, number, number);
      return row && toRoot(row);
    },

    async path(commitment, root = "") {
      const row = (await findPath([commitment.slice(2), root]))!;
      if (row.root === null || row.leaf_index === null) {
        return { missing: row.leaf_index === null ? "commitment" : "root" };
      }
      if (row.leaf_index >= row.leaf_count) {
        return { missing: "commitment under this root" };
      }
      return { commitment, ...toPath(row, row.leaf_index, row.root, emptySiblings) };
    },
  };
}

function toRoot(row: RootRow): MerkleRoot {
  return { root: row.root, blockNumber: BigInt(row.block_number), leafCount: row.leaf_count };
}

function toPath(
  { leaf_count: leafCount, edge, nodes, block_number }: PathRow,
  leafIndex: number,
  root: string,
  emptySiblings: readonly string[],
): Omit<MerklePath, "commitment"> {
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
    return first + 2 ** level <= leafCount ? stored.get(level)! : edgeHash(edge, level);
  });
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

/**
 * Whether a root was current after one of the {@link knownBlocks} blocks before this one.
 *
 * @param db inside the transaction of the block.
 */
export async function isKnownRoot(db: Knex, engine: Engine, root: string, blockNumber: bigint): Promise<boolean> {
  const [row] = rowsOf(
    await db.raw(
      `SELECT 1 FROM merkle_roots WHERE root = ? AND block_number >= ${oldestKnownIn(engine, "CAST(? AS bigint)")}`,
      [root, Number(blockNumber) - 1],
    ),
  );
  return row !== undefined;
}

export async function hasCommitment(db: Knex, commitment: string): Promise<boolean> {
  return (
    (await db("commitments")
      .where({ commitment: toBytes(commitment) })
      .first("leaf_index")) !== undefined
  );
}

export async function countLeaves(db: Knex): Promise<number> {
  const row = (await db("merkle_roots").orderBy("block_number", "desc").first("leaf_count")) as { leaf_count: number };
  return row.leaf_count;
}

/**
 * Adds leaves, none of which is in the tree, and gives the new root.
 *
 * @param db inside the transaction of the block.
 * @param blockNumber the block that adds them.
 */
export async function appendLeaves(
  db: Knex,
  engine: Engine,
  { leaves, blockNumber, foldAll }: { leaves: readonly bigint[]; blockNumber: bigint; foldAll: FoldAll },
): Promise<string> {
  const before = await countLeaves(db);
  const peaks = await readPeaks(db, before);
  const runs = await growTree(before, leaves, peaks, foldAll);
  const { bytes } = terms[engine];
  const { table, slot, text } = listTables[engine];
  const insert = async (into: string, values: string, run: NodeRun): Promise<void> => {
    const hashes = JSON.stringify(run.hashes.map((hash) => toHex(hash).slice(2)));
    await db.raw(`INSERT INTO ${into} SELECT ${values} FROM ${table}`, [hashes]);
  };
  const hash = bytes(text);
  await insert("commitments (commitment, leaf_index)", `${hash}, ${before} + ${slot}`, runs[0]!);
  for (const run of runs) {
    await insert("merkle_nodes (id, hash)", `${nodeId(run.level, run.position)} + ${slot}, ${hash}`, run);
  }
  const count = before + leaves.length;
  const after = peaksAfter(count, peaks, runs);
  const edge = edgeOf(count, after);
  const root = toHex(edge[treeDepth] ?? after[treeDepth]!);
  await db("merkle_roots").insert({
    block_number: Number(blockNumber),
    root,
    leaf_count: count,
    edge: Buffer.concat(edge.slice(1, treeDepth).map((node) => toBytes(toHex(node ?? 0n)))),
  });
  await db("merkle_roots")
    .where("block_number", "<", db.raw(oldestKnownIn(engine, "CAST(? AS bigint)"), [Number(blockNumber)]))
    .delete();
  return root;
}

/** On each level with an odd number of complete nodes, the last of these. */
export async function readPeaks(db: Knex, leafCount: number): Promise<Peaks> {
  const ids = new Map<number, number>();
  for (let level = 0; level <= treeDepth; level++) {
    const complete = Math.floor(leafCount / 2 ** level);
    if (complete % 2 === 1) {
      ids.set(nodeId(level, complete - 1), level);
    }
  }
  const rows = (await db("merkle_nodes")
    .whereIn("id", [...ids.keys()])
    .select("id", "hash")) as {
    id: number;
    hash: Buffer;
  }[];
  return Object.fromEntries(rows.map(({ id, hash }) => [ids.get(id)!, BigInt(`0x${hash.toString("hex")}`)]));
}

function toBytes(hash: string): Buffer {
  return Buffer.from(hash.slice(2), "hex");
}
