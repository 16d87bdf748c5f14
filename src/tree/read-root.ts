/** Reads the root of a tree from its root page. */
import type { LoadPages } from "./change.js";
import { emptyHash } from "./hashes.js";
import { treeNodes } from "./node-hashes.js";
import { decodeTreePage, nodeOf } from "./page.js";

export async function readRoot(load: LoadPages): Promise<Uint8Array> {
  const page = (await load([""])).get("");
  return page === undefined ? emptyHash : treeNodes.hashOfNode(nodeOf(decodeTreePage(page), ""));
}
