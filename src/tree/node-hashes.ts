/** The hashes of trees with what Node.js has. */
import { hash } from "node:crypto";
import { createTreeHashes } from "./hashes.js";
import { createTreeNodes } from "./nodes.js";
import { createStateHashes } from "./state-format.js";

export const treeHashes = createTreeHashes((bytes) => hash("sha256", bytes, "buffer"));
export const stateHashes = createStateHashes(treeHashes);
export const treeNodes = createTreeNodes(treeHashes);
