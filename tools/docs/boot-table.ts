/** Generates the table of the boot steps, for docs/internals/architecture.md. */
import { bootTable } from "../../src/node/boot.js";
import type { Row } from "../../src/node/lifecycle/boot-table.js";
import { code, table } from "./markdown.js";

/** Returns the rows in order. */
export function bootRows(): string {
  return table(["Row", "Kind", "Needs", "Provides", "In a dormant node"], bootTable.rows.map(cells));
}

const kinds: Readonly<Record<Row["kind"], string>> = {
  step: "step",
  part: "part",
  elsewhere: "step, run by another process",
};

function cells({ name, kind, needs, provides, whenDormant }: Row): string[] {
  const list = (names: readonly string[]): string => names.map(code).join(", ");
  return [name, kinds[kind], list(needs), list(provides), whenDormant === "wait" ? "waits" : "runs"];
}
