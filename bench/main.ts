/** Measures a node against bare baselines in one run, and prints ratios: `npm run bench`, `npm run bench -- --help`. */
import { Command, InvalidArgumentError } from "commander";
import { execFileSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { availableParallelism, cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { benchAttestation } from "./attestation.js";
import { compareWithKept, formatChanges, readRun } from "./benchmarks.js";
import { benchBoot } from "./boot.js";
import { benchCaching } from "./caching.js";
import { benchCodecs } from "./codecs.js";
import { benchDurability } from "./durability.js";
import { benchFuzz } from "./fuzz.js";
import { benchHostile } from "./hostile.js";
import { benchNetwork } from "./network.js";
import { formatRows } from "./print.js";
import type { BenchContext, Row } from "./row.js";
import { benchSizes } from "./sizes.js";
import { benchSnapshot } from "./snapshot.js";
import { benchState } from "./state.js";
import { benchStore } from "./store.js";
import { startGatehouse } from "./server-process.js";
import { benchSwitchovers } from "./switchovers.js";
import { benchTree } from "./tree.js";
import { benchTransports } from "./transports.js";
import { benchWatchers } from "./watchers.js";

const suites = [
  ...([
    "transports",
    "caching",
    "codecs",
    "boot",
    "hostile",
    "store",
    "state",
    "durability",
    "tree",
    "attestation",
    "network",
  ] as const),
  ...(["snapshot", "switchovers", "fuzz", "sizes", "watchers"] as const),
] as const;
type Suite = (typeof suites)[number];

const genesis = fileURLToPath(new URL("../../examples/genesis.json", import.meta.url));

const { args, opts } = (() => {
  const command = new Command("bench")
    .description(
      "Measures a node as it is shipped against bare baselines, in turns in one run. A ratio of 1 is as fast as the " +
        "baseline, by processor time of the server for one request; requests a second depend on the load generator too.",
    )
    .argument("[suites...]", `what to measure: ${suites.join(", ")}`, suites)
    .option("--rounds <NUMBER>", "how often to repeat each measurement; medians are shown", positive, 5)
    .option("--seconds <NUMBER>", "length of one measurement", positive, 2)
    .option("--programs <NUMBER>", "programs that the suites store and state load", positive, 100_000)
    .option("--leaves <NUMBER>", "leaves that the suite tree loads", positive, 100_000)
    .option("--blocks <NUMBER>", "blocks that the suite network follows", positive, 1_000)
    .option(
      "--against <FOLDER>",
      "another clone, built: the suites transports and caching measure it beside this one, before and after",
    )
    .option("--transactions <NUMBER>", "transactions of the chain that the suite snapshot joins", positive, 20_000)
    .option("--changes <NUMBER>", "how often the servers change places in the suite switchovers", positive, 100)
    .option("--only <TEXT>", "of the suite hostile, the attacks whose names contain this")
    .option("--minutes <NUMBER>", "how long the suite fuzz sends hostile transactions", positive, 1)
    .option("--seed <NUMBER>", "what the suite fuzz makes them from", positive)
    .option(
      "--compare <FILE>",
      "set the ratios beside those of a run that was printed with --json; 1 where one has fallen",
    )
    .option("--json", "print the result as JSON")
    .parse();
  return {
    args: command.processedArgs[0] as string[],
    opts: command.opts<{
      rounds: number;
      seconds: number;
      programs: number;
      leaves: number;
      blocks: number;
      transactions: number;
      changes: number;
      against?: string;
      compare?: string;
      only?: string;
      minutes: number;
      seed?: number;
      json?: boolean;
    }>(),
  };
})();

const chosen = args.map((name): Suite => {
  const suite = suites.find((known) => known === name);
  if (suite === undefined) {
    process.stderr.write(`There is no suite "${name}"; there are ${suites.join(", ")}.\n`);
    process.exit(2);
  }
  return suite;
});
const kept = opts.compare === undefined ? undefined : await readRun(opts.compare);
const directory = await mkdtemp(join(tmpdir(), "gatehouse-bench-"));
try {
  const rows = await run();
  print(rows);
  if (kept !== undefined) {
    const changes = compareWithKept(rows, kept);
    process.stderr.write(`\n${formatChanges(changes, kept)}`);
    process.exitCode = changes.some(({ hasFallen }) => hasFallen) ? 1 : 0;
  }
} finally {
  await rm(directory, { recursive: true, force: true });
}

async function run(): Promise<Row[]> {
  const peers = join(directory, "peers.json");
  // A peer that refuses: the main loop runs, and nothing else takes part in the measurement.
  await writeFile(peers, JSON.stringify([{ url: "https://127.0.0.1:9" }]));
  const flags = ["--genesis", genesis, "--peers", peers, "--data-dir", join(directory, "data")];
  const rows: Row[] = [];
  if (chosen.includes("boot")) {
    rows.push(...(await benchBoot(flags, opts.rounds, say)));
  }
  if (chosen.includes("caching")) {
    const { rounds, seconds, against } = opts;
    rows.push(...(await benchCaching({ directory, rounds, seconds, say, against })));
  }
  if (chosen.includes("store")) {
    const { programs, rounds, seconds } = opts;
    rows.push(...(await benchStore({ directory, programs, rounds, seconds, say })));
  }
  if (chosen.includes("state")) {
    const { programs, rounds, seconds } = opts;
    rows.push(...(await benchState({ directory, programs, rounds, seconds, say })));
  }
  if (chosen.includes("durability")) {
    const { rounds, seconds } = opts;
    rows.push(...(await benchDurability({ directory, rounds, seconds, say })));
  }
  if (chosen.includes("tree")) {
    const { leaves, rounds, seconds } = opts;
    rows.push(...(await benchTree({ directory, leaves, rounds, seconds, say })));
  }
  if (chosen.includes("attestation")) {
    const { rounds, seconds } = opts;
    rows.push(...(await benchAttestation({ directory, rounds, seconds, say })));
  }
  if (chosen.includes("network")) {
    const { blocks, rounds, seconds } = opts;
    rows.push(...(await benchNetwork({ directory, blocks, rounds, seconds, say })));
  }
  if (chosen.includes("snapshot")) {
    const { transactions, rounds, seconds } = opts;
    rows.push(...(await benchSnapshot({ directory, transactions, rounds, seconds, say })));
  }
  if (chosen.includes("switchovers")) {
    rows.push(...(await benchSwitchovers({ directory, changes: opts.changes, say })));
  }
  if (chosen.includes("sizes")) {
    const { rounds, seconds } = opts;
    rows.push(...(await benchSizes({ directory, rounds, seconds, say })));
  }
  if (chosen.includes("watchers")) {
    const { rounds, seconds } = opts;
    rows.push(...(await benchWatchers({ directory, rounds, seconds, say })));
  }
  if (chosen.includes("hostile")) {
    const { seconds, only } = opts;
    rows.push(...(await benchHostile({ directory, seconds, say, only })));
  }
  if (chosen.includes("fuzz")) {
    const { minutes, seed = randomInt(1, 2 ** 31) } = opts;
    rows.push(...(await benchFuzz({ directory, minutes, seed, say })));
  }
  if (chosen.includes("transports") || chosen.includes("codecs")) {
    rows.push(...(await benchRunning([...flags, "--allow-private-peers"])));
  }
  return rows;
}

/** What is measured of a node that does nothing else; where there is another build, of both. */
async function benchRunning(flags: readonly string[]): Promise<Row[]> {
  const rows: Row[] = [];
  const node = await startGatehouse(flags);
  const { rounds, seconds, against } = opts;
  const context: BenchContext = { node, rounds, seconds, say };
  try {
    if (chosen.includes("transports")) {
      const otherFlags = [...flags, "--data-dir", join(directory, "data-before")];
      const before = against === undefined ? undefined : await startGatehouse(otherFlags, { build: against });
      try {
        rows.push(...(await benchTransports({ ...context, before })));
      } finally {
        await before?.stop();
      }
    }
    if (chosen.includes("codecs")) {
      rows.push(...(await benchCodecs(context)));
    }
  } finally {
    await node.stop();
  }
  return rows;
}

function print(rows: readonly Row[]): void {
  const machine = { node: process.version, cpu: cpus()[0]?.model ?? "unknown", cores: availableParallelism() };
  if (opts.json === true) {
    const { rounds, seconds } = opts;
    process.stdout.write(`${JSON.stringify({ commit: commitOf(), machine, rounds, seconds, rows }, null, 2)}\n`);
    return;
  }
  process.stdout.write(`Node ${machine.node}, ${machine.cores} cores, ${machine.cpu}; medians of ${opts.rounds}\n\n`);
  process.stdout.write(formatRows(rows, process.stdout.columns));
}

/** What is measured, as git calls it. */
function commitOf(): string {
  return execFileSync("git", ["describe", "--always", "--dirty"], { encoding: "utf8" }).trim();
}

function say(what: string): void {
  process.stderr.write(process.stderr.isTTY ? `\r\u001b[K${what}` : `${what}\n`);
  if (process.stderr.isTTY && what === "") {
    process.stderr.write("\r");
  }
}

function positive(text: string): number {
  const number = Number(text);
  if (!(number > 0)) {
    throw new InvalidArgumentError("It must be a number above 0.");
  }
  return number;
}
