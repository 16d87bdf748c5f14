/** Tree hashes that use the SHA-256 of Node.js. */
import { hash } from "node:crypto";
import { createTreeHashes } from "./hashes.js";
import { createTreeNodes } from "./nodes.js";
import { createStateHashes } from "./state-format.js";

/**
 * Hashes with SHA-256. Converting a binary string uses pooled memory; a separate allocation would take as long as the
 * hash.
 */
const sha256 = (content: Uint8Array | string): Uint8Array => Buffer.from(hash("sha256", content, "binary"), "latin1");

export const treeHashes = createTreeHashes(sha256, sha256);
export const stateHashes = createStateHashes(treeHashes);
export const treeNodes = createTreeNodes(treeHashes);
