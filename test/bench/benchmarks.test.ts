/** A run beside a kept one: what has fallen by more than the noise is named, and nothing else. */
import test from "ava";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { compareWithStored, formatChanges, readRun } from "../../tools/bench/benchmarks.js";
import { ratioOfRounds } from "../../tools/bench/statistics.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";

const machine = { node: "v20.19.0", cpu: "a processor", cores: 2 };

function keptRow(name: string, rounds: readonly number[]) {
  return { suite: "store", name, baseline: "bare", ...ratioOfRounds(rounds, [1, 1, 1]), figures: {} };
}

test("a ratio that is lower in every round than in any before has fallen", (t) => {
  const rows = [keptRow("lower", [0.5, 0.6, 0.7]), keptRow("alike", [0.5, 0.6, 0.7]), keptRow("gone", [1, 1, 1])];
  const kept = { commit: "1234567", machine, rounds: 3, seconds: 2, rows };
  const now = [keptRow("lower", [0.3, 0.4, 0.49]), keptRow("alike", [0.3, 0.4, 0.51]), keptRow("new", [0.1, 0.1, 0.1])];
  const changes = compareWithStored(now, kept);
  t.deepEqual(
    changes.map(({ name, before, after, hasFallen }) => [name, before, after, hasFallen]),
    [
      ["lower", 0.6, 0.4, true],
      ["alike", 0.6, 0.4, false],
    ],
  );
  t.is(
    formatChanges(changes, kept),
    "Beside commit 1234567 (Node v20.19.0, 2 cores, a processor):\n\n" +
      "lower  0.60 → 0.40  of bare (0.50–0.70 → 0.30–0.49)  FALLEN\n" +
      "alike  0.60 → 0.40  of bare (0.50–0.70 → 0.30–0.51)\n" +
      "\nFallen by more than the noise: lower.\n",
  );
});

test("of one round alone nothing is said to have fallen", (t) => {
  const { name, baseline, ratio } = keptRow("lower", [0.5, 0.6, 0.7]);
  const kept = {
    commit: "1234567",
    machine,
    rounds: 1,
    seconds: 2,
    rows: [{ suite: "store", name, baseline, ratio, figures: {} }],
  };
  const changes = compareWithStored([keptRow("lower", [0.1, 0.1, 0.1])], kept);
  t.deepEqual(
    changes.map(({ hasFallen, spreads }) => [hasFallen, spreads]),
    [[false, "one round → 0.10–0.10"]],
  );
  t.regex(formatChanges(changes, kept), /\nNothing has fallen by more than the noise\.\n$/);
});

test("a file that is no run is refused, with what is wrong in it", async (t) => {
  const file = join(await temporaryDirectory(t), "run.json");
  await writeFile(file, '{"rows": [{"name": 1}]}');
  await t.throwsAsync(readRun(file), { message: /is no run that npm run bench -- --json has printed: [^]*commit/ });
});
