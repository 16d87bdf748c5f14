/** Generates the table of docs/metrics.md. */
import { nodeMetrics } from "../../src/metrics/table.js";
import { code, plain, table } from "./markdown.js";

/** Returns every metric of the node, in the order of its page. */
export function metricsTable(): string {
  return table(
    ["Metric", "Type", "Labels", "Value"],
    nodeMetrics.map(({ name, type, labels, help }) => [code(name), type, labels.map(code).join(", "), plain(help)]),
  );
}
