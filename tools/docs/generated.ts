/**
 * Lists the generated documents and test vectors: an entry for each part of a page, or for a complete file. `npm run
 * docs` writes them.
 */
import { readFile } from "node:fs/promises";
import { benchmarkHighlights, benchmarkTables } from "./benchmarks.js";
import { bootTable, configSchema, metricsTable, optionsTable, reasonsTable } from "./tables.js";
import { addressVectors } from "./vectors/addresses.js";
import { identityVectors } from "./vectors/identities.js";
import { keyVectors } from "./vectors/keys.js";
import { proofVectors } from "./vectors/proofs.js";
import { transactionVectors } from "./vectors/transactions.js";

interface Generated {
  /** Path from the root of the repository. */
  readonly path: string;
  /** Name of the part between the comments `generated: <part>` and `/generated: <part>`. Default: the complete file. */
  readonly part?: string;
  readonly text: () => string;
}

const generated: readonly Generated[] = [
  { path: "docs/internals/architecture.md", part: "boot", text: bootTable },
  { path: "docs/options.md", part: "options", text: optionsTable },
  { path: "docs/config.schema.json", text: configSchema },
  { path: "docs/errors.md", part: "reasons", text: reasonsTable },
  { path: "docs/internals/benchmarks.md", part: "benchmarks", text: benchmarkTables },
  { path: "README.md", part: "highlights", text: benchmarkHighlights },
  { path: "docs/metrics.md", part: "metrics", text: metricsTable },
  { path: "examples/vectors/keys.json", text: keyVectors },
  { path: "examples/vectors/addresses.json", text: addressVectors },
  { path: "examples/vectors/identities.json", text: identityVectors },
  { path: "examples/vectors/transactions.json", text: transactionVectors },
  { path: "examples/vectors/proofs.json", text: proofVectors },
];

/** Returns the expected contents of all generated files by path, before formatting. */
export async function generateDocs(): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>();
  for (const { path, part, text } of generated) {
    const before = files.get(path) ?? (part === undefined ? "" : await readFile(path, "utf8"));
    files.set(path, part === undefined ? text() : replacePart(path, before, part, text()));
  }
  return files;
}

function replacePart(path: string, page: string, part: string, text: string): string {
  const [start, end] = [`<!-- generated: ${part} -->`, `<!-- /generated: ${part} -->`];
  const [from, to] = [page.indexOf(start), page.indexOf(end)];
  if (from === -1 || to < from) {
    throw new Error(`${path} has no place for "${part}": it needs the lines ${start} and ${end}.`);
  }
  return `${page.slice(0, from)}${start}\n\n${text}\n\n${page.slice(to)}`;
}
