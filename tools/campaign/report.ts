/** Report of a campaign, in Markdown. */
import { columns, meanings } from "./model/history.js";
import type { CampaignResult, Latencies, Round } from "./result.js";
import { cellsOf, tableOf, toMarkdown } from "./table.js";

/** Environment of a campaign. */
export interface RunInfo {
  /** Commit of the checkout, with a note if it has uncommitted changes. */
  readonly commit: string;
  readonly date: string;
  readonly node: string;
  readonly cpu: string;
  readonly cores: number;
  /** Command that repeats the campaign. */
  readonly command: string;
}

/** Limit on the findings that the report lists. */
const maxFindings = 100;

export function writeReport(result: CampaignResult, run: RunInfo): string {
  const { rounds, findings, counts, calm, skipped, endedEarly, engine, seed, seconds } = result;
  const title = `# Campaign on ${engine === "sqlite" ? "SQLite" : "PostgreSQL"}, seed ${seed}, ${run.date}`;
  const skippedLines = Object.entries(skipped).map(([kind, reason]) => `- \`${kind}\`: ${reason}`);
  const parts = [
    title,
    [
      `- commit: ${run.commit}`,
      `- repeated by: \`${run.command}\``,
      `- ${(seconds / 60).toFixed(1)} minutes, ${rounds.length} rounds of faults; Node.js ${run.node}, ${run.cores} cores, ${run.cpu}`,
      `- ${counts.sent} transactions sent, ${counts.taken} acknowledged, ${counts.included} in ${counts.blocks} blocks, ${counts.rejected} rejected`,
      `- \`/health\` outside of faults: ${latencies(calm)}`,
      ...(endedEarly === undefined ? [] : [`- **The campaign ended early.** ${endedEarly}`]),
    ].join("\n"),
    "## Violations by fault",
    toMarkdown(cellsOf(tableOf(result))),
    [
      ...columns.map((column) => `- **${column}**: ${meanings[column]}.`),
      "- **rest**: time from the end of the faults until the network was at rest.",
      "- **/health p99**: latency of the other nodes during the fault.",
    ].join("\n"),
    ...(skippedLines.length === 0 ? [] : ["Impossible faults on this machine:", skippedLines.join("\n")]),
    "## Findings",
    findings.length === 0
      ? "None."
      : findings
          .slice(0, maxFindings)
          .map(({ column, sentence, round }) => `- **${column}**, round ${round}: ${toOneLine(sentence)}`)
          .join("\n"),
    ...(findings.length > maxFindings ? [`And ${findings.length - maxFindings} more.`] : []),
    "## Rounds",
    rounds.map(describeRound).join("\n"),
  ];
  return `${parts.join("\n\n")}\n`;
}

function describeRound({ number, faults, restMs, said, others }: Round): string {
  const faultTitles = faults.map(({ node, title }) => `${node}: ${title}`).join("; ");
  const statusLines = Object.entries(said).map(([node, counts]) => `  - ${node} responded: ${counts || "nothing"}`);
  const rest = `at rest after ${(restMs / 1000).toFixed(1)} s; the others' \`/health\` ${latencies(others)}`;
  return [`- ${number}. ${faultTitles}; ${rest}`, ...statusLines].join("\n");
}

function latencies({ ascendingMs: { length: count }, p50Ms, p99Ms }: Latencies): string {
  return count === 0 ? "not measured" : `p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms of ${count}`;
}

/** Joins the lines of a text, which may contain output of a process, and truncates it to 600 characters. */
function toOneLine(text: string): string {
  const line = text.replace(/\s+/g, " ");
  return line.length > 600 ? `${line.slice(0, 600)}…` : line;
}
