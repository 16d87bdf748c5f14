/** A short campaign: one fault of each kind on a real network. CAMPAIGN_SEED repeats a run. */
import test from "ava";
import { randomInt } from "node:crypto";
import { runCampaign } from "../../tools/campaign/campaign.js";
import { writeReport } from "../../tools/campaign/report.js";
import type { FaultKind } from "../../tools/campaign/settings.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";

/** The kinds of faults. A kind that is not possible on this machine is skipped, with the reason in the log. */
const kinds: readonly FaultKind[] = ["kill", "stop", "pause", "cut", "power"];

test("a network loses no acknowledged transaction over kills, stops, freezes, partitions and power cuts", async (t) => {
  t.timeout(600_000, "a loaded machine");
  const seed = Number(process.env["CAMPAIGN_SEED"] ?? randomInt(1, 1_000_000));
  t.log(`CAMPAIGN_SEED=${seed}`);
  const result = await runCampaign(t, {
    ...{ seed, kinds, engine: "sqlite", minutes: 10, rate: 20, restMs: 90_000, isShort: true },
    directory: await temporaryDirectory(t),
    log: (text) => t.log(text),
  });
  t.deepEqual(result.findings, []);
  t.is(result.endedEarly, undefined);
  t.deepEqual(
    result.rounds.flatMap(({ faults }) => faults.map(({ kind }) => kind)),
    kinds.filter((kind) => !(kind in result.skipped)),
  );
  t.log(result.skipped);
  t.true(result.counts.included > 0);
  t.true(result.calm.ascendingMs.length > 0);
  const runInfo = { commit: "abc", date: "2026-01-01", node: "v20", cpu: "one", cores: 2, command: "again" };
  const report = writeReport(result, runInfo);
  t.regex(report, new RegExp(`^# Campaign on SQLite, seed ${seed}, 2026-01-01\n`));
  t.regex(report, /\n\| all +\| +\d \|/);
});
