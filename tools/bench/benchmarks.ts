/** Stored figures: docs/internals/benchmarks.json holds those of the latest release, and a run is compared with them. */
import { readFile } from "node:fs/promises";
import { z } from "zod";
import type { Row, SuiteRow } from "./row.js";

const result = {
  ratio: z.number().optional(),
  spread: z.object({ low: z.number(), high: z.number() }).optional(),
  figures: z.record(z.string(), z.number().nullable()),
  note: z.string().optional(),
};

/** A run as it is printed with --json. */
const run = z.object({
  commit: z.string(),
  machine: z.object({ node: z.string(), cpu: z.string(), cores: z.number() }),
  rounds: z.number(),
  seconds: z.number(),
  rows: z.array(z.object({ suite: z.string(), name: z.string(), baseline: z.string().optional(), ...result })),
});

export type KeptRun = z.infer<typeof run>;

/** What became of a ratio. */
export interface Change {
  readonly name: string;
  readonly baseline: string;
  readonly before: number;
  /** Undefined where this run did not measure it. */
  readonly after: number | undefined;
  /** It is lower in every round than it was in any, so that it is no noise. */
  readonly hasFallen: boolean;
  readonly spreads: string;
}

/** Reads a run. Throws an Error that says what is wrong with the file. */
export async function readRun(file: string): Promise<KeptRun> {
  return parseRun(await readFile(file, "utf8"), file);
}

/** The same of the file's text. */
export function parseRun(text: string, file: string): KeptRun {
  const read = run.safeParse(JSON.parse(text));
  if (!read.success) {
    throw new Error(`${file} is no run that npm run bench -- --json has printed: ${z.prettifyError(read.error)}`);
  }
  return read.data;
}

/** Sets rows beside those of a kept run, ratio by ratio; rows of suites that were not chosen now are left out. */
export function compareWithKept(rows: readonly SuiteRow[], kept: KeptRun): Change[] {
  return kept.rows.flatMap((before) => {
    const after = rows.find(
      ({ suite, name, baseline }) => suite === before.suite && name === before.name && baseline === before.baseline,
    );
    if (before.ratio === undefined || after === undefined) {
      return [];
    }
    const { name, baseline = "the baseline", ratio, spread } = before;
    const hasFallen = after.spread !== undefined && spread !== undefined && after.spread.high < spread.low;
    return [
      {
        name,
        baseline,
        before: ratio,
        after: after.ratio,
        hasFallen,
        spreads: `${range(spread)} → ${range(after.spread)}`,
      },
    ];
  });
}

function range(spread: Row["spread"]): string {
  return spread === undefined ? "one round" : `${spread.low.toFixed(2)}–${spread.high.toFixed(2)}`;
}

/** A line for each ratio, and in the end what has fallen. */
export function formatChanges(changes: readonly Change[], { commit, machine }: KeptRun): string {
  const width = Math.max(0, ...changes.map(({ name }) => name.length));
  const lines = changes.map(({ name, baseline, before, after, spreads, hasFallen }) => {
    const now = after?.toFixed(2) ?? "–";
    return `${name.padEnd(width)}  ${before.toFixed(2)} → ${now.padEnd(5)} of ${baseline} (${spreads})${hasFallen ? "  FALLEN" : ""}\n`;
  });
  const fallen = changes.filter(({ hasFallen }) => hasFallen).map(({ name }) => name);
  const end =
    fallen.length === 0
      ? "Nothing has fallen by more than the noise.\n"
      : `Fallen by more than the noise: ${fallen.join("; ")}.\n`;
  return `Beside commit ${commit} (Node ${machine.node}, ${machine.cores} cores, ${machine.cpu}):\n\n${lines.join("")}\n${end}`;
}
