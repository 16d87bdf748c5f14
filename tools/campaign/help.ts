/** What `npm run campaign -- --help` says below the options. */
import { faults } from "./faults/all.js";
import { columns, meanings } from "./model/history.js";
import { faultKinds } from "./settings.js";

const width = 80;

/** Names with what they mean, one below the other. */
function listed(entries: readonly (readonly [name: string, meaning: string])[]): string {
  const indent = 4 + Math.max(...entries.map(([name]) => name.length));
  return entries
    .map(
      ([name, meaning]) => `  ${name}`.padEnd(indent) + wrap(meaning, width - indent).join(`\n${" ".repeat(indent)}`),
    )
    .join("\n");
}

/** A text in lines of at most so many characters. */
function wrap(text: string, most: number): string[] {
  return text.split(" ").reduce<string[]>((lines, word) => {
    const longer = `${lines.at(-1) ?? ""} ${word}`.trimStart();
    return longer.length <= most ? [...lines.slice(0, -1), longer] : [...lines, word];
  }, []);
}

/** The text. */
export const help = `
Faults, of which each round makes one or two, on nodes and for as long as the
seed draws:
${listed(faultKinds.map((kind) => [kind, faults[kind].does]))}

After each round the load waits, the network must come to rest, and all that was
acknowledged is looked for on every node. What is counted:
${listed(columns.map((column) => [column, meanings[column]]))}

Exit codes: 0 when nothing was found, 1 when something was, 2 when the campaign
could not begin. A seed repeats faults and load; what a node is doing when it is
hit is up to the machine.

Examples:
  npm run campaign
  npm run campaign -- --minutes 60 --report data/hour.md
  npm run campaign -- --seed 7 --faults kill,power --json
  npm run campaign -- --database postgresql --faults server
`;
