/** Packs the nodes of the commitment tree, which had a row each, into tree pages. */
import { yieldToEventLoop } from "../../base/async/yielding.js";
import type { Queries } from "../../db/queries/database.js";

const levelSize = 2 ** 21;

/** Node with its children, which a leaf lacks. Its id is its level times {@link levelSize}, plus its position. */
interface NodeRow {
  readonly id: number;
  readonly hash: Buffer;
  readonly left_hash: Buffer | null;
  readonly right_hash: Buffer | null;
}

/** Packs all nodes. Leaves out a node that is not the hash of its children, and these, so that their reads fail. */
export async function packNodes(db: Queries): Promise<void> {
  const left = `n.id - ${levelSize} + n.id % ${levelSize}`;
  const nodesAfter = db.prepare<NodeRow>(`SELECT n.id, n.hash, l.hash AS left_hash, r.hash AS right_hash
    FROM merkle_nodes n LEFT JOIN merkle_nodes l ON l.id = ${left} LEFT JOIN merkle_nodes r ON r.id = ${left} + 1
    WHERE n.id > ? ORDER BY n.id LIMIT 1000`);
  let rows = await nodesAfter(-1);
  if (rows.length === 0) {
    return;
  }
  // Loaded here, because most databases have nothing to pack.
  const [{ createNodeStore }, { hashPair }] = await Promise.all([
    import("../../zk/node-store.js"),
    import("../../zk/poseidon.js"),
  ]);
  const store = createNodeStore(db);
  for (; rows.length > 0; rows = await nodesAfter(rows.at(-1)!.id)) {
    const runs = [];
    for (const { id, ...row } of rows) {
      const [level, position] = [Math.floor(id / levelSize), id % levelSize];
      const hash = toElement(row.hash);
      const isCorrect = level === 0 || hash === hashPair(toElement(row.left_hash), toElement(row.right_hash));
      runs.push(
        isCorrect
          ? { level, position, hashes: [hash] }
          : { level: level - 1, position: 2 * position, hashes: [0n, 0n] },
      );
      await yieldToEventLoop();
    }
    await store.insert(runs);
  }
}

/** Returns the field element of a stored node; 0, which is no node, if it is missing. */
function toElement(bytes: Buffer | null): bigint {
  return bytes === null ? 0n : BigInt(`0x${bytes.toString("hex")}`);
}
