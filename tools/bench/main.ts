/** Measures a node against bare baselines in one run, and prints ratios: `npm run bench`, `npm run bench -- --help`. */
import { Argument, Command, InvalidArgumentError } from "commander";
import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { availableParallelism, cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { benchApply } from "./writes/apply.js";
import { benchAttestation } from "./reads/attestation.js";
import { compareWithStored, formatChanges, readRun } from "./benchmarks.js";
import { makeHome } from "./blocks.js";
import { benchBoot } from "./reads/boot.js";
import { benchCaching } from "./reads/caching.js";
import { benchCodecs } from "./reads/codecs.js";
import { benchDurability } from "./writes/durability.js";
import { benchFuzz } from "./attacks/fuzz.js";
import { benchFronts } from "./reads/fronts.js";
import { benchHostile } from "./attacks/hostile.js";
import { benchLongChain } from "./reads/long-chain.js";
import { benchNetwork } from "./writes/network.js";
import { benchPages } from "./reads/pages.js";
import { formatRows } from "./print.js";
import type { BenchContext, BenchSettings, Row, SuiteRow } from "./row.js";
import { benchSizes } from "./writes/sizes.js";
import { benchSnapshot } from "./writes/snapshot.js";
import { benchState } from "./writes/state.js";
import { benchStore } from "./reads/store.js";
import { benchLatency } from "./writes/latency.js";
import { type ServerProcess, startGatehouse } from "./servers/server-process.js";
import { benchSwitchovers } from "./writes/switchovers.js";
import { benchTree } from "./writes/tree.js";
import { benchTransports } from "./reads/transports.js";
import { benchWatchers } from "./reads/watchers.js";
import { benchWorkers } from "./reads/workers.js";

/** Functions that measure each suite, in the order in which they run. */
const suites: Readonly<Record<string, (settings: BenchSettings) => Promise<Row[]>>> = {
  transports: (settings) => benchRunning(settings, benchTransports),
  fronts: benchFronts,
  caching: benchCaching,
  codecs: (settings) => benchRunning(settings, benchCodecs),
  boot: benchBoot,
  hostile: benchHostile,
  store: benchStore,
  apply: benchApply,
  state: benchState,
  durability: benchDurability,
  latency: benchLatency,
  tree: benchTree,
  attestation: benchAttestation,
  network: benchNetwork,
  snapshot: benchSnapshot,
  switchovers: benchSwitchovers,
  fuzz: benchFuzz,
  sizes: benchSizes,
  watchers: benchWatchers,
  workers: benchWorkers,
  pages: (settings) => benchRunning(settings, benchPages),
  longchain: benchLongChain,
};
const names = Object.keys(suites);

const { args, opts } = (() => {
  const command = new Command("bench")
    .description(
      "Measures a built node against bare baselines, alternately in one run. A ratio of 1 is as fast as the baseline, by " +
        "processor time of the server per request. Requests per second also depend on the load generator.",
    )
    .addArgument(new Argument("[suites...]", `suites to run: ${names.join(", ")}`).default(names, "all"))
    .option("--rounds <NUMBER>", "repetitions of each measurement; the output has medians", positive, 5)
    .option("--seconds <NUMBER>", "length of a measurement", positive, 2)
    .option("--programs <NUMBER>", "programs in the suites store and state", positive, 100_000)
    .option("--leaves <NUMBER>", "leaves in the suite tree", positive, 100_000)
    .option("--blocks <NUMBER>", "blocks in the suites network and apply", positive, 1_000)
    .option("--chain <NUMBER>", "blocks in the suite longchain", positive, 100_000)
    .option(
      "--against <FOLDER>",
      "folder of another built clone, which the suites transports, caching and apply measure as well",
    )
    .option("--transactions <NUMBER>", "transactions in the suite snapshot", positive, 20_000)
    .option("--changes <NUMBER>", "switchovers in the suite switchovers", positive, 100)
    .option("--only <TEXT>", "attacks of the suite hostile whose names contain this text (default: all)")
    .option("--workers <N>", "option of the node in the suite hostile (default: that of a node)")
    .option("--edge <KIND>", "the same: compiled or express")
    .option("--memory <MIB>", "the same; below 1024 the heap is limited to five eighths of it", positive)
    .option("--http <VERSION>", "HTTP version of clients in the suite hostile, 1 or 2, also of floods", httpVersion, 1)
    .option("--tls", "serve with TLS in the suite hostile, and attack by floods alone")
    .option(
      "--control",
      "run each flood of the suite hostile against another process first, which shows what it takes of the machine",
    )
    .option("--minutes <NUMBER>", "length of the suite fuzz", positive, 1)
    .option("--seed <NUMBER>", "seed of the suite fuzz (default: random)", positive)
    .option(
      "--compare <FILE>",
      "compare the ratios with the output of another run with --json; exit with code 1 if one has fallen",
    )
    .option("--json", "print the result as JSON")
    .addHelpText(
      "after",
      `
Attacks:
  $ npm run bench -- hostile --only "/livez, 16"             attacks with this text in their names; an unknown one lists all
  $ npm run bench -- hostile --workers 2 --edge express      a variant; also --memory 256, --http 2, --tls
  $ npm run bench -- hostile --only "unfinished" --control   also measures what the flood takes of the machine itself

  Clients on other addresses measure the idle node, and then the attacked one. A verdict is kept if 99 % of their requests
  are answered, each p99 is at most ten times the idle one and 250 ms, the node lives, and its memory stays within the
  limit; and if a probe from the attacker's address is answered, and another client there is told 429, not cut off.
  An attack lasts four times --seconds. The exit code is 1 if a verdict is violated. See docs/internals/benchmarks.md.`,
    )
    .parse();
  return {
    args: command.processedArgs[0] as string[],
    opts: command.opts<Omit<BenchSettings, "directory" | "flags" | "say"> & { compare?: string; json?: boolean }>(),
  };
})();

for (const name of args.filter((each) => !names.includes(each))) {
  process.stderr.write(`Unknown suite "${name}". Suites: ${names.join(", ")}.\n`);
  process.exit(2);
}
const storedRun = opts.compare === undefined ? undefined : await readRun(opts.compare);
const directory = await mkdtemp(join(tmpdir(), "gatehouse-bench-"));
const genesis = await readFile(fileURLToPath(new URL("../../../examples/genesis.json", import.meta.url)), "utf8");
/** Start a node without data. */
const { flags } = await makeHome(join(directory, "data"), { genesis });
try {
  const rows = await run();
  print(rows);
  if (rows.some(({ isViolated }) => isViolated)) {
    process.exitCode = 1;
  }
  if (storedRun !== undefined) {
    const changes = compareWithStored(rows, storedRun);
    process.stderr.write(`\n${formatChanges(changes, storedRun)}`);
    process.exitCode = changes.some(({ hasFallen }) => hasFallen) ? 1 : (process.exitCode ?? 0);
  }
} finally {
  await rm(directory, { recursive: true, force: true });
}

/** Runs the suites one after the other. A failed suite does not discard the results of others. */
async function run(): Promise<SuiteRow[]> {
  const rows: SuiteRow[] = [];
  for (const suite of names.filter((each) => args.includes(each))) {
    try {
      rows.push(...(await suites[suite]!({ ...opts, directory, flags, say })).map((row) => ({ suite, ...row })));
    } catch (error) {
      process.exitCode = 1;
      rows.push({
        suite,
        name: suite,
        figures: {},
        note: `It failed: ${error instanceof Error ? error.message : String(error)}`,
      });
    }
  }
  return rows;
}

/** Measures a node without other load, and another build if one is given. */
async function benchRunning(settings: BenchSettings, bench: (context: BenchContext) => Promise<Row[]>): Promise<Row[]> {
  const start = async (name: string, build?: string): Promise<ServerProcess> =>
    await startGatehouse([...settings.flags, "--data-dir", join(settings.directory, name)], { build });
  const node = await start("data");
  try {
    const before = settings.against === undefined ? undefined : await start("data-before", settings.against);
    try {
      return await bench({ ...settings, node, before });
    } finally {
      await before?.stop();
    }
  } finally {
    await node.stop();
  }
}

function print(rows: readonly SuiteRow[]): void {
  const machine = { node: process.version, cpu: cpus()[0]?.model ?? "unknown", cores: availableParallelism() };
  if (opts.json === true) {
    const { rounds, seconds } = opts;
    process.stdout.write(`${JSON.stringify({ commit: commitOf(), machine, rounds, seconds, rows }, null, 2)}\n`);
    return;
  }
  process.stdout.write(`Node ${machine.node}, ${machine.cores} cores, ${machine.cpu}; medians of ${opts.rounds}\n\n`);
  process.stdout.write(formatRows(rows, process.stdout.columns));
}

/** Returns the measured commit, as git describes it. */
function commitOf(): string {
  return execFileSync("git", ["describe", "--always", "--dirty"], { encoding: "utf8" }).trim();
}

function say(what: string): void {
  process.stderr.write(process.stderr.isTTY ? `\r\u001b[K${what}` : `${what}\n`);
  if (process.stderr.isTTY && what === "") {
    process.stderr.write("\r");
  }
}

function httpVersion(text: string): 1 | 2 {
  if (text !== "1" && text !== "2") {
    throw new InvalidArgumentError("It must be 1 or 2.");
  }
  return text === "1" ? 1 : 2;
}

function positive(text: string): number {
  const number = Number(text);
  if (!(number > 0)) {
    throw new InvalidArgumentError("It must be a number above 0.");
  }
  return number;
}
