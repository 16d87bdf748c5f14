/** Command line of campaigns, which inject faults into a real network: `npm run campaign -- --help`. */
import { Command, InvalidArgumentError, Option } from "commander";
import { execFileSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { availableParallelism, cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { errorMessage } from "../../src/base/errors/error-message.js";
import { runCampaign } from "./campaign.js";
import { createTeardownStack } from "./closing.js";
import { help } from "./help.js";
import { type RunInfo, writeReport } from "./report.js";
import type { CampaignResult } from "./result.js";
import { type CampaignEngine, type FaultKind, faultKinds } from "./settings.js";
import { cellsOf, tableOf, toMarkdown } from "./table.js";

const opts = new Command("campaign")
  .description(
    "Injects faults into a network of an authority and two followers under load, and checks that no acknowledged " +
      "transaction is lost, doubled or torn, and that no node is stuck, serves wrong data or crashes.",
  )
  .option("--minutes <NUMBER>", "time during which faults start", positive, 2)
  .option("--seed <NUMBER>", "seed of faults and load (default: random, printed at start)", positiveInteger)
  .addOption(
    new Option("--database <ENGINE>", "database engine of the nodes")
      .choices(["sqlite", "postgresql"])
      .default("sqlite"),
  )
  .option("--faults <KINDS>", "kinds of faults, separated by commas (default: all that are possible)", kindsOf)
  .option("--rate <NUMBER>", "transactions per second", positive, 20)
  .option("--rest <SECONDS>", "limit in seconds until the network is at rest while no node catches up", positive, 90)
  .option("--rounds <NUMBER>", "limit on rounds, in addition to the time (default: none)", positiveInteger)
  .option("--json", "print the result as JSON")
  .option("--report <FILE>", "write a report in Markdown to this file")
  .option("--keep", "keep the data directories of the nodes, and print their path")
  .addHelpText("after", help)
  .parse()
  .opts<{
    minutes: number;
    seed?: number;
    database: CampaignEngine;
    faults?: readonly FaultKind[];
    rate: number;
    rest: number;
    rounds?: number;
    json?: boolean;
    report?: string;
    keep?: boolean;
  }>();

const seed = opts.seed ?? randomInt(1, 1_000_000);
const directory = await mkdtemp(join(tmpdir(), "gatehouse-campaign-"));
const closing = createTeardownStack();
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => void finish(2));
}
log(`seed ${seed}, ${opts.database}, ${opts.minutes} minutes`);
try {
  const result = await runCampaign(closing, {
    ...{ seed, directory, log, engine: opts.database, minutes: opts.minutes, rate: opts.rate },
    ...{ kinds: opts.faults ?? faultKinds, restMs: opts.rest * 1_000 },
    ...(opts.rounds !== undefined && { rounds: opts.rounds }),
  });
  await printResult(result);
  await finish(result.findings.length > 0 || result.endedEarly !== undefined ? 1 : 0);
} catch (error) {
  log(`The campaign cannot continue: ${errorMessage(error)}`);
  await finish(2);
}

async function printResult(result: CampaignResult): Promise<void> {
  if (opts.report !== undefined) {
    await writeFile(opts.report, writeReport(result, runInfo()));
  }
  if (opts.json === true) {
    process.stdout.write(`${JSON.stringify({ ...runInfo(), ...result, table: tableOf(result) }, null, 2)}\n`);
    return;
  }
  process.stdout.write(`\n${toMarkdown(cellsOf(tableOf(result)))}\n\n`);
  for (const { column, sentence, round } of result.findings) {
    process.stdout.write(`${column}, round ${round}: ${sentence}\n`);
  }
  const { p50Ms, p99Ms } = result.calm;
  process.stdout.write(`/health outside of faults: p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms\n`);
  process.stdout.write(`Seed ${seed}; repeated by: ${runInfo().command}\n`);
}

function runInfo(): RunInfo {
  const git = (...args: readonly string[]): string => {
    try {
      return execFileSync("git", args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
    } catch {
      return "";
    }
  };
  const changes = git("status", "--porcelain", "--untracked-files=no") === "" ? "" : ", with changes";
  const faultsOption = opts.faults === undefined ? "" : ` --faults ${opts.faults.join(",")}`;
  const { minutes, database, rate } = opts;
  return {
    commit: `${git("rev-parse", "--short=12", "HEAD") || "unknown"}${changes}`,
    date: new Date().toISOString().slice(0, 10),
    node: process.version,
    cpu: cpus()[0]?.model ?? "unknown",
    cores: availableParallelism(),
    command: `npm run campaign -- --minutes ${minutes} --seed ${seed} --database ${database} --rate ${rate}${faultsOption}`,
  };
}

async function finish(code: number): Promise<never> {
  await closing.close();
  if (opts.keep === true) {
    log(`The data directories are in ${directory}.`);
  } else {
    await rm(directory, { recursive: true, force: true });
  }
  process.exit(code);
}

function log(text: string): void {
  process.stderr.write(`${text}\n`);
}

function kindsOf(text: string): FaultKind[] {
  return text.split(",").map((name) => {
    const kind = faultKinds.find((known) => known === name.trim());
    if (kind === undefined) {
      throw new InvalidArgumentError(`Unknown fault "${name}". Faults: ${faultKinds.join(", ")}.`);
    }
    return kind;
  });
}

function positive(text: string): number {
  const number = Number(text);
  if (!(number > 0)) {
    throw new InvalidArgumentError("It must be a number above 0.");
  }
  return number;
}

function positiveInteger(text: string): number {
  const number = positive(text);
  if (!Number.isInteger(number)) {
    throw new InvalidArgumentError("It must be a whole number above 0.");
  }
  return number;
}
