/** Measures the resources of a node, and the service for other clients, during attacks. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createCertificate } from "../../../src/base/crypto/certificate.js";
import { errorMessage } from "../../../src/base/errors/error-message.js";
import { newKey } from "../../../test/helpers/chain/keys.js";
import type { BenchSettings, Row } from "../row.js";
import { type MemoryPeaks, watchMemory } from "../servers/process-tree.js";
import type { NodeProcess } from "../servers/server-process.js";
import { attacks } from "./all.js";
import type { Attack, AttackCounts, Target } from "./attack.js";
import type { ControlPorts } from "./control.js";
import { sentMib } from "./flood.js";
import { type Judge, type PhaseReport, startJudge } from "./judge.js";
import type { Order, Report } from "./process.js";
import { type AttackResult, describeResult, figuresOfResult, type NodeFigures } from "./result.js";
import { prepareTarget, type StartedTarget, startTarget, type TargetFiles } from "./target.js";
import { createVariant, type Variant } from "./variant.js";
import { findViolations } from "./verdict.js";

/** Time limit in milliseconds for an attacker to report its results, and for a response of the node. */
const reportMs = 5_000;
/** Pause in milliseconds after an attack, before the resources that are still in use are measured. */
const settleMs = 2_000;
/** Length of the unmeasured phase at the start, in seconds, in which code is compiled and caches are filled. */
const warmupSeconds = 2;

/** Length of the two phases in seconds. */
interface Phases {
  readonly idle: number;
  readonly attack: number;
}

/** Runs each attack against a new node. */
export async function benchHostile(settings: BenchSettings): Promise<Row[]> {
  const { directory, seconds, say, only = "", control = false } = settings;
  const variant = createVariant(settings);
  const chosen = Object.entries(attacks).filter(([name]) => name.toLowerCase().includes(only.toLowerCase()));
  if (chosen.length === 0) {
    throw new Error(`No attack's name contains "${only}"; there are:\n${Object.keys(attacks).join("\n")}`);
  }
  const possible = chosen.filter(([, { isFlood }]) => isFlood === true || !variant.transport.tls);
  if (possible.length === 0) {
    throw new Error(`No attack whose name contains "${only}" is a flood, and only floods run with --tls.`);
  }
  say("hostile: making blocks to read");
  const files = await prepareTarget(directory);
  const phases = { idle: Math.max(4, 2 * seconds), attack: Math.max(5, 4 * seconds) };
  const rows: Row[] = [];
  for (const [i, [name, attack]] of possible.entries()) {
    const progress = (what: string): void => say(`hostile ${i + 1}/${possible.length}, ${name}: ${what}`);
    const row = await endure({ name, attack, files, variant, phases, progress, hasControl: control }).then(
      rowOf,
      // Later attacks still run.
      (error: unknown) => ({ figures: {}, note: `It failed: ${errorMessage(error)}`, isViolated: true }),
    );
    rows.push({ name: variant.name === "" ? name : `${name} [${variant.name}]`, ...row });
    progress(row.note);
  }
  return rows;
}

function rowOf(result: AttackResult) {
  const { violations } = result;
  return {
    figures: figuresOfResult(result),
    details: describeResult(result),
    isViolated: violations.length > 0,
    note: violations.length > 0 ? `VIOLATED: ${violations.join("; ")}` : "kept",
  };
}

interface Endurance {
  readonly name: string;
  readonly attack: Attack;
  readonly files: TargetFiles;
  readonly variant: Variant;
  readonly phases: Phases;
  readonly progress: (what: string) => void;
  readonly hasControl: boolean;
}

async function endure(endurance: Endurance): Promise<AttackResult> {
  const { attack, files, variant, progress } = endurance;
  progress("starting a node");
  const started = await startTarget(files, attack, variant);
  const { node, target, smallProgram } = started;
  const { port, genesisHash: network, transport } = target;
  const judge = startJudge({ port, transport, network, smallProgram });
  try {
    return await measure(endurance, started, judge);
  } finally {
    await judge.stop();
    await node.stop();
  }
}

async function measure(endurance: Endurance, { node, target }: StartedTarget, judge: Judge): Promise<AttackResult> {
  const { name, attack, variant, phases, progress, hasControl } = endurance;
  await judge.measure(warmupSeconds);
  progress(`measuring the idle node for ${phases.idle} s`);
  const idle = await judge.measure(phases.idle);
  const control = hasControl && attack.isFlood === true ? await measureControl(endurance, target, judge) : undefined;
  const before = await readFigures(node, target);
  progress(`attacking for ${phases.attack} s`);
  const memory = watchMemory(node.pid);
  const { report, counts } = await measureUnder({ name, target }, judge, phases.attack);
  const isRunning = node.exitCode() === undefined;
  const inclusion = isRunning ? await judge.findIncluded() : undefined;
  await sleep(settleMs);
  const peaks = memory.stop();
  const after = await readFigures(node, target);
  const state = nodeStateOf(node, peaks, after, variant);
  return {
    ...{ idle, control, attack: report, inclusion, counts, before, after, peaks, state },
    ended: node.exitCode(),
    logLines: node.logLines(),
    violations: [
      ...(counts === undefined || counts[sentMib] === 0 ? ["the attacker sent nothing, or did not report"] : []),
      ...findViolations(idle.services, report.services, state),
    ],
  };
}

function nodeStateOf(node: NodeProcess, { privateBytes }: MemoryPeaks, after: NodeFigures, { memoryMib }: Variant) {
  const hasRestarted = after.workerRestarts > 0;
  const isAlive = node.exitCode() === undefined && !hasRestarted;
  return { isAlive, peakBytes: privateBytes, limitBytes: memoryMib * 1024 ** 2 };
}

/** Runs an attack while the judge measures. */
async function measureUnder(
  order: Omit<Order, "maxSeconds">,
  judge: Judge,
  seconds: number,
): Promise<{ readonly report: PhaseReport; readonly counts: AttackCounts | undefined }> {
  // Late responses may take the judge some seconds more.
  const attacker = await startAttack({ ...order, maxSeconds: 3 * seconds });
  const report = await judge.measure(seconds);
  return { report, counts: await attacker.stop() };
}

/** Measures the idle node while the flood meets another process. */
async function measureControl(
  { name, phases, progress }: Endurance,
  target: Target,
  judge: Judge,
): Promise<PhaseReport> {
  progress("measuring the idle node while a control is attacked");
  const child = forkScript("control.js");
  try {
    child.send(createCertificate(newKey().privateKey));
    const [ports] = (await once(child, "message")) as [ControlPorts];
    const [port, omniPort] = [target.transport.tls ? ports.tls : ports.plain, ports.tls];
    const [mcpPort, metricsPort] = [ports.plain, ports.plain];
    const stand = { ...target, port, omniPort, mcpPort, metricsPort, isControl: true };
    return (await measureUnder({ name, target: stand }, judge, phases.idle)).report;
  } finally {
    child.kill("SIGKILL");
  }
}

function forkScript(script: string): ChildProcess {
  return fork(fileURLToPath(new URL(script, import.meta.url)), {
    execArgv: ["--no-deprecation"],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
}

/** Runs an attack in a process until it is stopped. Returns no results if the process must be killed. */
async function startAttack(order: Order): Promise<{ stop(): Promise<AttackCounts | undefined> }> {
  const child = forkScript("process.js");
  await once(child, "message");
  child.send(order);
  return {
    async stop() {
      const ended = child.exitCode === null ? once(child, "exit") : Promise.resolve();
      let counts: AttackCounts | undefined;
      child.once("message", (report) => (counts = (report as Report).deeds));
      if (child.connected) {
        child.send("stop");
      }
      const killTimer = setTimeout(() => child.kill("SIGKILL"), reportMs);
      await ended;
      clearTimeout(killTimer);
      return counts;
    },
  };
}

/** Reads the figures of a node; NaN for a figure that the node does not report. */
async function readFigures(node: NodeProcess, target: Target): Promise<NodeFigures> {
  const usage = await node.usage().catch(() => ({ rssBytes: NaN }));
  const url = `http://127.0.0.1:${target.metricsPort}/metrics`;
  const metrics = await fetch(url, { signal: AbortSignal.timeout(reportMs) }).then(
    (response) => response.text(),
    () => "",
  );
  const metric = (name: string): number => Number(new RegExp(`^${name} (\\S+)`, "m").exec(metrics)?.[1] ?? NaN);
  return {
    ...usage,
    uncaught: metric("gatehouse_uncaught_exceptions_total"),
    activeRequests: metric("gatehouse_requests_in_flight"),
    workerRestarts: metric("gatehouse_worker_restarts_total"),
  };
}
