/** The table of what was found: a line for each kind of fault, a column for each thing that can be wrong. */
import { median } from "../bench/statistics.js";
import { type Column, columns } from "./model/history.js";
import { latenciesOf } from "./phases.js";
import type { CampaignResult, Round } from "./result.js";
import type { FaultKind } from "./settings.js";

/** A line of the table. */
export interface TableLine {
  readonly name: string;
  readonly rounds: number;
  readonly counts: Readonly<Record<Column, number>>;
  /** Until the network was at rest, in seconds. */
  readonly restS: { readonly median: number; readonly most: number };
  /** /health of nodes to which nothing happened meanwhile; NaN where none was asked. */
  readonly healthP99Ms: number;
}

/** A line for each kind that was made, and one for all; a finding of two faults at a time counts for both kinds. */
export function tableOf({ rounds, findings }: CampaignResult): TableLine[] {
  const kinds = new Set(rounds.flatMap((round) => round.faults.map(({ kind }) => kind)));
  const isOf = (kind: FaultKind) => (round: Round) => round.faults.some((fault) => fault.kind === kind);
  const line = (name: string, some: readonly Round[], more: readonly number[] = []): TableLine => {
    const numbers = new Set([...some.map(({ number }) => number), ...more]);
    const found = findings.filter(({ round }) => numbers.has(round));
    const rests = some.map(({ restMs }) => restMs / 1000);
    return {
      name,
      rounds: some.length,
      counts: Object.fromEntries(
        columns.map((column) => [column, found.filter((one) => one.column === column).length]),
      ) as Record<Column, number>,
      restS: rests.length === 0 ? { median: 0, most: 0 } : { median: median(rests), most: Math.max(...rests) },
      healthP99Ms: latenciesOf(some.flatMap(({ others }) => others.ascendingMs)).p99Ms,
    };
  };
  return [
    ...[...kinds].map((kind) => line(kind, rounds.filter(isOf(kind)))),
    line(
      "all",
      rounds,
      findings.map(({ round }) => round),
    ),
  ];
}

/** Its cells. */
export function cellsOf(lines: readonly TableLine[]): string[][] {
  const head = ["fault", "rounds", ...columns, "rest s, median", "rest s, most", "/health p99 ms"];
  return [
    head,
    ...lines.map(({ name, rounds, counts, restS, healthP99Ms }) => [
      ...[name, String(rounds), ...columns.map((column) => String(counts[column]))],
      ...[restS.median.toFixed(1), restS.most.toFixed(1), Number.isNaN(healthP99Ms) ? "–" : healthP99Ms.toFixed(1)],
    ]),
  ];
}

/** The table as Markdown. */
export function toMarkdown(cells: readonly (readonly string[])[]): string {
  const [head, ...lines] = cells;
  const widths = head!.map((_, i) => Math.max(3, ...cells.map((line) => line[i]!.length)));
  const row = (line: readonly string[]): string =>
    `| ${line.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join(" | ")} |`;
  const rule = `| ${widths.map((width, i) => (i === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`)).join(" | ")} |`;
  return [row(head!), rule, ...lines.map(row)].join("\n");
}
