/** Generates the table of the boot steps, for docs/internals/architecture.md. */
import { bootSteps } from "../../src/node/lifecycle/boot-steps.js";
import { code, table } from "./markdown.js";

/** Returns the steps in order. */
export function bootTable(): string {
  const rows = Object.entries(bootSteps).map(([name, rules]) => [
    code(name),
    "isElsewhere" in rules ? "another process" : "the node",
    "waits" in rules ? "waits" : "runs",
    "isElsewhere" in rules || "mayFail" in rules ? "goes on" : "ends",
  ]);
  return table(["Step", "Run by", "In a dormant node", "After an error, the boot"], rows);
}
