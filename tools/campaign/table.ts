/** Table of findings: a line for each kind of fault, and a column for each kind of error. */
import { median } from "../bench/statistics.js";
import { type Column, columns } from "./model/history.js";
import { type CampaignResult, latenciesOf, type Round } from "./result.js";
import type { FaultKind } from "./settings.js";

/** Line of the table. */
export interface TableLine {
  readonly name: string;
  readonly rounds: number;
  readonly counts: Readonly<Record<Column, number>>;
  /** Time until the network was at rest, in seconds. */
  readonly restS: { readonly median: number; readonly most: number };
  /** p99 latency of /health on the nodes without a fault; NaN if none was polled. */
  readonly healthP99Ms: number;
}

/** Returns a line for each injected kind, and one for all. With two concurrent faults, a finding counts for both kinds. */
export function tableOf({ rounds, findings }: CampaignResult): TableLine[] {
  const kinds = new Set(rounds.flatMap((round) => round.faults.map(({ kind }) => kind)));
  const isOf = (kind: FaultKind) => (round: Round) => round.faults.some((fault) => fault.kind === kind);
  const line = (name: string, lineRounds: readonly Round[], extraNumbers: readonly number[] = []): TableLine => {
    const numbers = new Set([...lineRounds.map(({ number }) => number), ...extraNumbers]);
    const lineFindings = findings.filter(({ round }) => numbers.has(round));
    const restTimes = lineRounds.map(({ restMs }) => restMs / 1000);
    return {
      name,
      rounds: lineRounds.length,
      counts: Object.fromEntries(
        columns.map((column) => [column, lineFindings.filter((finding) => finding.column === column).length]),
      ) as Record<Column, number>,
      restS:
        restTimes.length === 0 ? { median: 0, most: 0 } : { median: median(restTimes), most: Math.max(...restTimes) },
      healthP99Ms: latenciesOf(lineRounds.flatMap(({ others }) => others.ascendingMs)).p99Ms,
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

/** Returns the cells of the table, the heading first. */
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

/** Formats the table as Markdown. */
export function toMarkdown(cells: readonly (readonly string[])[]): string {
  const [head, ...lines] = cells;
  const widths = head!.map((_, i) => Math.max(3, ...cells.map((line) => line[i]!.length)));
  const row = (line: readonly string[]): string =>
    `| ${line.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join(" | ")} |`;
  const rule = `| ${widths.map((width, i) => (i === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`)).join(" | ")} |`;
  return [row(head!), rule, ...lines.map(row)].join("\n");
}
