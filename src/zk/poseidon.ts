/** The tree's hash: Poseidon with circomlib's parameters over BN254, two inputs. */
import { poseidon2 } from "poseidon-lite/poseidon2";

/** Depth of the tree: 2^20 leaves at most. */
export const treeDepth = 20;

/** Hash of a node from its children. */
export function hashPair(left: bigint, right: bigint): bigint {
  return poseidon2([left, right]);
}

/** By level from the leaves (0) to the root (20): the node above nothing but empty leaves. */
export const emptyNodes: readonly bigint[] = Array.from({ length: treeDepth }).reduce<bigint[]>(
  (levels) => [...levels, hashPair(levels.at(-1)!, levels.at(-1)!)],
  [0n],
);

/** A field element as 0x and 64 lower-case hex digits. */
export function toHex(element: bigint): string {
  return `0x${element.toString(16).padStart(64, "0")}`;
}
