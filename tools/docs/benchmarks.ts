/**
 * Generates the tables of docs/internals/benchmarks.md and the README from benchmarks.json, the run of the latest
 * release.
 */
import { readFileSync } from "node:fs";
import { type StoredRun, parseRun } from "../bench/benchmarks.js";
import { formatFigure } from "../bench/print.js";
import { code, plain, table } from "./tables.js";

type KeptRow = StoredRun["rows"][number];

const path = "docs/internals/benchmarks.json";
const readKept = (): StoredRun => parseRun(readFileSync(path, "utf8"), path);

/** Returns all results, in the order of the suites. */
export function benchmarkTables(): string {
  const { commit, machine, rounds, seconds, rows } = readKept();
  const of = `Commit ${code(commit)}, Node.js ${machine.node.slice(1)}, ${machine.cores} cores (${plain(machine.cpu)}); medians of ${rounds} rounds of ${seconds} s.`;
  return [of, table(["Suite", "Measured", "Ratio", "Rounds", "Baseline", "Figures"], rows.map(cellsOf))].join("\n\n");
}

function cellsOf({ suite, name, ratio, spread, baseline = "", figures, note }: KeptRow): string[] {
  const range = spread === undefined ? "" : `${spread.low.toFixed(2)}–${spread.high.toFixed(2)}`;
  const shown = Object.entries(figures).map(
    ([unit, figure]) => `${unit} ${figure === null ? "–" : formatFigure(figure)}`,
  );
  return [
    suite,
    plain(name),
    ratio?.toFixed(2) ?? "",
    range,
    plain(baseline),
    plain([...shown, ...(note === undefined ? [] : [note])].join(", ")),
  ];
}

/** Most important figures by row: a ratio, or figures with their units. */
const highlights: readonly (readonly [label: string, suite: string, name: string, units?: readonly string[]])[] = [
  ["`GET /health`, compared with a bare HTTP server that sends the same bytes", "transports", "GET /health"],
  ["gRPC `GetVersion`, compared with a bare HTTP/2 server", "transports", "gRPC GetVersion"],
  ["a storage program, read often", "store", "program, hot"],
  ["a storage program, read for the first time", "store", "program, cold"],
  ["a page of 50 programs of an owner", "store", "owner page of 50"],
  ["a Merkle proof, read often", "tree", "proof, hot"],
  ["following another node, compared with applying its blocks", "network", "following, blocks of 50"],
  ["verifying attestations, compared with the library alone", "attestation", "verify, 750 bytes"],
  ["boot to the first response", "boot", "boot to first 200", ["ms"]],
  ["memory, idle and after load", "boot", "resident memory", ["idle MiB", "after load MiB"]],
];

/** Returns ten important rows, for the README. */
export function benchmarkHighlights(): string {
  const { rows } = readKept();
  const cells = highlights.map(([label, suite, name, units]) => {
    const row = rows.find((each) => each.suite === suite && each.name === name);
    if (row === undefined) {
      throw new Error(`${path} has no row "${name}" of the suite ${suite}.`);
    }
    return [label, units === undefined ? row.ratio!.toFixed(2) : units.map((unit) => figureOf(row, unit)).join(", ")];
  });
  return table(["Measured", "Result"], cells);
}

function figureOf({ figures, name }: KeptRow, unit: string): string {
  const figure = figures[unit];
  if (figure === undefined || figure === null) {
    throw new Error(`The row "${name}" of ${path} has no ${unit}.`);
  }
  return `${formatFigure(figure)} ${unit.split(" ").at(-1)!}`;
}
