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
Faults, of which each round makes one or two, on nodes and for as long as the
seed draws:
${formatList(faultKinds.map((kind) => [kind, faults[kind].description]))}

After each round the load waits, the network must come to rest, and all that was
acknowledged is looked for on every node. What is counted:
${formatList(columns.map((column) => [column, meanings[column]]))}

Exit codes: 0 when nothing was found, 1 when something was, 2 when the campaign
could not begin. A seed repeats faults and load; what a node is doing when it is
hit is up to the machine.

Examples:
  npm run campaign
  npm run campaign -- --minutes 60 --report data/hour.md
  npm run campaign -- --seed 7 --faults kill,power --json
  npm run campaign -- --database postgresql --faults server
`;
