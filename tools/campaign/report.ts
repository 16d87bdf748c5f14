/** The report of a campaign, in Markdown. */
import { columns, meanings } from "./model/history.js";
import type { Latencies } from "./phases.js";
import type { CampaignResult, Round } from "./result.js";
import { cellsOf, tableOf, toMarkdown } from "./table.js";

/** Where and of what the campaign was. */
export interface Circumstances {
  /** Of the clone, with a word where it has changes that are not committed. */
  readonly commit: string;
  readonly date: string;
  readonly node: string;
  readonly cpu: string;
  readonly cores: number;
  /** The command that repeats it. */
  readonly command: string;
}

/** Most findings of which the sentence is written down. */
const mostFindings = 100;

/** Writes it. */
export function writeReport(result: CampaignResult, where: Circumstances): string {
  const { rounds, findings, counts, calm, skipped, endedEarly, engine, seed, seconds } = result;
  const title = `# Campaign on ${engine === "sqlite" ? "SQLite" : "PostgreSQL"}, seed ${seed}, ${where.date}`;
  const left = Object.entries(skipped).map(([kind, why]) => `- \`${kind}\`: ${why}`);
  const parts = [
    title,
    [
      `- commit: ${where.commit}`,
      `- repeated by: \`${where.command}\``,
      `- ${(seconds / 60).toFixed(1)} minutes, ${rounds.length} rounds of faults; Node.js ${where.node}, ${where.cores} cores, ${where.cpu}`,
      `- ${counts.sent} transactions sent, ${counts.taken} acknowledged, ${counts.included} in ${counts.blocks} blocks, ${counts.rejected} rejected`,
      `- \`/health\` outside of faults: ${latencies(calm)}`,
      ...(endedEarly === undefined ? [] : [`- **It ended early.** ${endedEarly}`]),
    ].join("\n"),
    "## What was found",
    toMarkdown(cellsOf(tableOf(result))),
    [
      ...columns.map((column) => `- **${column}**: ${meanings[column]}.`),
      "- **rest**: from the end of the faults until the network was at rest.",
      "- **/health p99**: of the nodes to which nothing was done, while it was done to others.",
    ].join("\n"),
    ...(left.length === 0 ? [] : ["Faults that were left out:", left.join("\n")]),
    "## Findings",
    findings.length === 0
      ? "None."
      : findings
          .slice(0, mostFindings)
          .map(({ column, sentence, round }) => `- **${column}**, round ${round}: ${oneLine(sentence)}`)
          .join("\n"),
    ...(findings.length > mostFindings ? [`And ${findings.length - mostFindings} more.`] : []),
    "## Rounds",
    rounds.map(describeRound).join("\n"),
  ];
  return `${parts.join("\n\n")}\n`;
}

function describeRound({ number, faults, restMs, said, others }: Round): string {
  const what = faults.map(({ node, title }) => `${node}: ${title}`).join("; ");
  const told = Object.entries(said).map(([node, words]) => `  - ${node} said ${words || "nothing"}`);
  const rest = `at rest after ${(restMs / 1000).toFixed(1)} s; the others' \`/health\` ${latencies(others)}`;
  return [`- ${number}. ${what}; ${rest}`, ...told].join("\n");
}

function latencies({ ascendingMs: { length: count }, p50Ms, p99Ms }: Latencies): string {
  return count === 0 ? "was not asked" : `p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms of ${count}`;
}

/** What a process has said may have several lines, and signs of Markdown. */
function oneLine(text: string): string {
  const line = text.replace(/\s+/g, " ");
  return line.length > 600 ? `${line.slice(0, 600)}…` : line;
}
