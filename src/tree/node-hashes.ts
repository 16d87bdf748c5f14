/** The hashes of trees with what Node.js has. */
import { hash } from "node:crypto";
import { createTreeHashes } from "./hashes.js";
import { createTreeNodes } from "./nodes.js";
import { createStateHashes } from "./state-format.js";

/** As a text and then in a part of a larger piece of memory: a piece for each hash takes as long as the hash. */
const sha256 = (content: Uint8Array | string): Uint8Array => Buffer.from(hash("sha256", content, "binary"), "latin1");

export const treeHashes = createTreeHashes(sha256, sha256);
export const stateHashes = createStateHashes(treeHashes);
export const treeNodes = createTreeNodes(treeHashes);
