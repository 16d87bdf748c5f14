/** The tables of docs/internals/benchmarks.md and the README, from benchmarks.json next to it, the run of the latest release. */
import { readFileSync } from "node:fs";
import { type KeptRun, parseRun } from "../bench/benchmarks.js";
import { formatFigure } from "../bench/print.js";
import { code, plain, table } from "./markdown.js";

type KeptRow = KeptRun["rows"][number];

const path = "docs/internals/benchmarks.json";
const readKept = (): KeptRun => parseRun(readFileSync(path, "utf8"), path);

/** Everything that was measured, suite by suite. */
export function benchmarkTables(): string {
  const { commit, machine, rounds, seconds, rows } = readKept();
  const suites = [...new Set(rows.map(({ suite }) => suite))];
  const of = `Commit ${code(commit)}, Node.js ${machine.node.slice(1)}, ${machine.cores} cores (${plain(machine.cpu)}); medians of ${rounds} rounds of ${seconds} s.`;
  const parts = suites.map((suite) => {
    const cells = rows.filter((row) => row.suite === suite).map(cellsOf);
    return `### ${suite}\n\n${table(["Measured", "Ratio", "Of a round", "Beside", "Figures"], cells)}`;
  });
  return [of, ...parts].join("\n\n");
}

function cellsOf({ name, ratio, spread, baseline = "", figures, note }: KeptRow): string[] {
  const range = spread === undefined ? "" : `${spread.low.toFixed(2)}–${spread.high.toFixed(2)}`;
  const shown = Object.entries(figures).map(
    ([unit, figure]) => `${unit} ${figure === null ? "–" : formatFigure(figure)}`,
  );
  return [
    plain(name),
    ratio?.toFixed(2) ?? "",
    range,
    plain(baseline),
    plain([...shown, ...(note === undefined ? [] : [note])].join(", ")),
  ];
}

/** What matters most, by the row that has it: a ratio, or figures by their units. */
const highlights: readonly (readonly [label: string, suite: string, name: string, units?: readonly string[]])[] = [
  ["`GET /health`, beside a bare server of HTTP that answers the same bytes", "transports", "GET /health"],
  ["gRPC `GetVersion`, beside a bare server of HTTP/2", "transports", "gRPC GetVersion"],
  ["a storage program that is read often", "store", "program, hot"],
  ["one that is read for the first time", "store", "program, cold"],
  ["a page of 50 programs of an owner", "store", "owner page of 50"],
  ["a Merkle proof that is read often", "tree", "proof, hot"],
  ["following another node, beside applying its blocks", "network", "following, blocks of 50"],
  ["verifying attestations, beside the library alone", "attestation", "verify, 750 bytes"],
  ["boot to the first answer", "boot", "boot to first 200", ["ms"]],
  ["memory, idle and after load", "boot", "resident memory", ["idle MiB", "after load MiB"]],
];

/** Ten rows that matter, for the README. */
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
