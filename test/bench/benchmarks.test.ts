/** The comparison of a benchmark run with a stored one: it reports drops that exceed the noise. */
import test from "ava";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { compareWithStored, formatChanges, readRun } from "../../tools/bench/benchmarks.js";
import { ratioOfRounds } from "../../tools/bench/statistics.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";
import { run } from "../helpers/process/programs.js";

const machine = { node: "v20.19.0", cpu: "a processor", cores: 2 };

/** A result row from the ratios of three rounds. */
function rowOf(name: string, rounds: readonly number[]) {
  return { suite: "store", name, baseline: "bare", ...ratioOfRounds(rounds, [1, 1, 1]), figures: {} };
}

test("a ratio has fallen if every round is below all stored rounds", (t) => {
  const rows = [rowOf("lower", [0.5, 0.6, 0.7]), rowOf("alike", [0.5, 0.6, 0.7]), rowOf("gone", [1, 1, 1])];
  const stored = { commit: "1234567", machine, rounds: 3, seconds: 2, rows };
  const now = [rowOf("lower", [0.3, 0.4, 0.49]), rowOf("alike", [0.3, 0.4, 0.51]), rowOf("new", [0.1, 0.1, 0.1])];
  const changes = compareWithStored(now, stored);
  t.deepEqual(
    changes.map(({ name, before, after, hasFallen }) => [name, before, after, hasFallen]),
    [
      ["lower", 0.6, 0.4, true],
      ["alike", 0.6, 0.4, false],
    ],
  );
  t.is(
    formatChanges(changes, stored),
    "Beside commit 1234567 (Node v20.19.0, 2 cores, a processor):\n\n" +
      "lower  0.60 → 0.40  of bare (0.50–0.70 → 0.30–0.49)  FALLEN\n" +
      "alike  0.60 → 0.40  of bare (0.50–0.70 → 0.30–0.51)\n" +
      "\nFallen by more than the noise: lower.\n",
  );
});

test("a single stored round never counts as fallen", (t) => {
  const { name, baseline, ratio } = rowOf("lower", [0.5, 0.6, 0.7]);
  const stored = {
    commit: "1234567",
    machine,
    rounds: 1,
    seconds: 2,
    rows: [{ suite: "store", name, baseline, ratio, figures: {} }],
  };
  const changes = compareWithStored([rowOf("lower", [0.1, 0.1, 0.1])], stored);
  t.deepEqual(
    changes.map(({ hasFallen, spreads }) => [hasFallen, spreads]),
    [[false, "one round → 0.10–0.10"]],
  );
  t.regex(formatChanges(changes, stored), /\nNothing has fallen by more than the noise\.\n$/);
});

test("rejects a file that is not a run, with the reason", async (t) => {
  const file = join(await temporaryDirectory(t), "run.json");
  await writeFile(file, '{"rows": [{"name": 1}]}');
  await t.throwsAsync(readRun(file), { message: /is no run that npm run bench -- --json has printed: [^]*commit/ });
});

test("a program that starts PostgreSQL, as the benchmark does, ends with its own exit code", async (t) => {
  for (const name of ["postgres-server", "postgres-pair"]) {
    const { href } = new URL(`../helpers/databases/${name}.js`, import.meta.url);
    const source = `import "${href}"; process.exitCode = 3;`;
    await t.throwsAsync(run(process.execPath, ["--input-type=module", "--eval", source]), { code: 3 }, name);
  }
});
