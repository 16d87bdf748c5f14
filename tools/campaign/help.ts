/** Help text of `npm run campaign -- --help`, below the options. */
import { faults } from "./faults/all.js";
import { columns, meanings } from "./model/history.js";
import { faultKinds } from "./settings.js";

const width = 80;

/** Formats names and their meanings in two columns. */
function formatList(entries: readonly (readonly [name: string, meaning: string])[]): string {
  const indent = 4 + Math.max(...entries.map(([name]) => name.length));
  return entries
    .map(
      ([name, meaning]) => `  ${name}`.padEnd(indent) + wrap(meaning, width - indent).join(`\n${" ".repeat(indent)}`),
    )
    .join("\n");
}

/** Breaks a text into lines of at most this many characters. */
function wrap(text: string, maxWidth: number): string[] {
  return text.split(" ").reduce<string[]>((lines, word) => {
    const extended = `${lines.at(-1) ?? ""} ${word}`.trimStart();
    return extended.length <= maxWidth ? [...lines.slice(0, -1), extended] : [...lines, word];
  }, []);
}

export const help = `
Each round injects one or two of these faults. The seed decides which, their
nodes and their durations:
${formatList(faultKinds.map((kind) => [kind, faults[kind].description]))}

After each round the load pauses until the network is at rest. Every node must
then have all acknowledged transactions. Violations:
${formatList(columns.map((column) => [column, meanings[column]]))}

Exit codes: 0 without violations, 1 with violations, 2 if the campaign could not
start. A seed repeats faults and load, but not the moment at which a fault hits
a process.

Examples:
  npm run campaign
  npm run campaign -- --minutes 60 --report data/hour.md
  npm run campaign -- --seed 7 --faults kill,power --json
  npm run campaign -- --database postgresql --faults server
`;
