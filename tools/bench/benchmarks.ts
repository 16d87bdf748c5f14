/** Compares a run with the stored figures of the latest release in docs/internals/benchmarks.json. */
import { readFile } from "node:fs/promises";
import { z } from "zod";
import type { Row, SuiteRow } from "./row.js";

const result = {
  ratio: z.number().optional(),
  spread: z.object({ low: z.number(), high: z.number() }).optional(),
  figures: z.record(z.string(), z.number().nullable()),
  note: z.string().optional(),
};

/** Run as printed with --json. */
const run = z.object({
  commit: z.string(),
  machine: z.object({ node: z.string(), cpu: z.string(), cores: z.number() }),
  rounds: z.number(),
  seconds: z.number(),
  rows: z.array(z.object({ suite: z.string(), name: z.string(), baseline: z.string().optional(), ...result })),
});

export type StoredRun = z.infer<typeof run>;

/** Change of a ratio between two runs. */
export interface Change {
  readonly name: string;
  readonly baseline: string;
  readonly before: number;
  /** Undefined if this run did not measure the ratio. */
  readonly after: number | undefined;
  /** True if the ratio was lower in every round than in any round before, which excludes noise. */
  readonly hasFallen: boolean;
  readonly spreads: string;
}

/** Reads a run. Throws an Error with the reason if the file is invalid. */
export async function readRun(file: string): Promise<StoredRun> {
  return parseRun(await readFile(file, "utf8"), file);
}

/** Parses the text of the file. */
export function parseRun(text: string, file: string): StoredRun {
  const read = run.safeParse(JSON.parse(text));
  if (!read.success) {
    throw new Error(`${file} is no run that npm run bench -- --json has printed: ${z.prettifyError(read.error)}`);
  }
  return read.data;
}

/** Compares rows with those of a stored run. Omits rows of suites that were not run now. */
export function compareWithStored(rows: readonly SuiteRow[], storedRun: StoredRun): Change[] {
  return storedRun.rows.flatMap((before) => {
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

/** Formats a line for each ratio, and a summary of the decreased ones. */
export function formatChanges(changes: readonly Change[], { commit, machine }: StoredRun): string {
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
