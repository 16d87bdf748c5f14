/** The table of the boot, for docs/architecture.md. */
import { bootTable } from "../../src/node/boot.js";
import type { Row } from "../../src/node/boot-table.js";

/** The rows in their order. */
export function bootRows(): string {
  const head = ["Row", "Kind", "Needs", "Provides", "In a dormant node"];
  return [head, head.map(() => "---"), ...bootTable.rows.map(cells)].map((row) => `| ${row.join(" | ")} |`).join("\n");
}

const kinds: Readonly<Record<Row["kind"], string>> = {
  step: "step",
  part: "part",
  elsewhere: "step, run by another process",
};

function cells({ name, kind, needs, provides, whenDormant }: Row): string[] {
  const list = (names: readonly string[]): string => names.map((each) => `\`${each}\``).join(", ");
  return [name, kinds[kind], list(needs), list(provides), whenDormant === "wait" ? "waits" : "is taken"];
}
