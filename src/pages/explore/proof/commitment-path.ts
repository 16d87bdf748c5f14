/** Computes the path from a commitment to the root of its tree, and draws it. */
import { poseidon2 } from "poseidon-lite/poseidon2";
import type { MerkleProofResponse } from "../responses.js";
import { draw, h } from "../dom.js";
import { hash, table } from "../parts.js";

/** Level of a path. Levels are in order from the leaf to the root. */
export interface Level {
  /** Node of the path: 0x and 64 lowercase hex digits. */
  readonly node: string;
  /** Sibling of the node; undefined for the root. */
  readonly sibling: string | undefined;
  /** Position of the node under its parent. */
  readonly side: "left" | "right";
  /** True if the subtree of the sibling has no commitments yet. */
  readonly isEmpty: boolean;
}

const toHex = (element: bigint): string => `0x${element.toString(16).padStart(64, "0")}`;

/** Computes the hashes from the leaf to the root, ignoring the root in the response. Throws for an invalid path. */
export function computePath({ leaf, siblings, pathIndices }: MerkleProofResponse["proof"]): Level[] {
  let node = BigInt(leaf);
  let empty = 0n;
  const levels: Level[] = siblings.map(([sibling], i) => {
    const other = BigInt(sibling);
    const isRight = pathIndices[i] === 1;
    const level: Level = {
      node: toHex(node),
      sibling: toHex(other),
      side: isRight ? "right" : "left",
      isEmpty: other === empty,
    };
    node = poseidon2(isRight ? [other, node] : [node, other]);
    empty = poseidon2([empty, empty]);
    return level;
  });
  return [...levels, { node: toHex(node), sibling: undefined, side: "left", isEmpty: false }];
}

const [width, rowHeight, boxWidth, boxHeight] = [340, 36, 128, 22];
const columns = { left: 80, right: 260 } as const;

/** Draws the path as SVG: the root at the top, the leaf at the bottom, and the sibling of each node next to it. */
export function drawPath(levels: readonly Level[], leafIndex: number): SVGElement {
  const height = rowHeight * levels.length;
  const yOf = (level: number): number => height - rowHeight * (level + 0.5);
  const xOf = (level: number): number => (level === levels.length - 1 ? width / 2 : columns[levels[level]!.side]);
  const lines = levels.slice(0, -1).flatMap(({ side }, i) =>
    (["left", "right"] as const).map((end) =>
      draw("line", {
        class: end === side ? "on-path" : "beside",
        ...{ x1: columns[end], y1: yOf(i) - boxHeight / 2, x2: xOf(i + 1), y2: yOf(i + 1) + boxHeight / 2 },
      }),
    ),
  );
  const boxes = levels.flatMap(({ node, sibling, side, isEmpty }, i) => [
    box(xOf(i), yOf(i), i === 0 ? `leaf ${leafIndex}` : i === levels.length - 1 ? "root" : digits(node), "on-path"),
    ...(sibling === undefined
      ? []
      : [box(columns[side === "left" ? "right" : "left"], yOf(i), isEmpty ? "empty" : digits(sibling), "beside")]),
  ]);
  const label = `The path from leaf ${leafIndex} up to the root, over ${levels.length - 1} levels, each with the node that it is hashed with`;
  return draw(
    "svg",
    { class: "path", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    ...lines,
    ...boxes,
  );
}

const digits = (hash: string): string => `${hash.slice(0, 8)}…${hash.slice(-4)}`;

function box(x: number, y: number, text: string, className: string): SVGElement {
  const rectangle = { x: x - boxWidth / 2, y: y - boxHeight / 2, width: boxWidth, height: boxHeight, rx: 4 };
  return draw(
    "g",
    { class: className },
    draw("rect", rectangle),
    draw("text", { x, y: y + 4, "text-anchor": "middle" }, text),
  );
}

/** Returns the path as a table, for screen readers and for copying. */
export function pathTable(levels: readonly Level[]): HTMLElement {
  const rows = levels
    .slice(0, -1)
    .map(({ node, sibling, side, isEmpty }, i) => [
      i,
      hash(node),
      side,
      h("span", {}, hash(sibling!), ...(isEmpty ? [" (empty)"] : [])),
    ]);
  return h(
    "details",
    {},
    h("summary", {}, "As a table"),
    table("Levels", ["Level", "Hash", "Side", "Hashed with"], rows).element,
  );
}
