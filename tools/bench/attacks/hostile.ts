/** Measures the resources of a node, and the service for other clients, during attacks. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { attacks } from "./all.js";
import type { Attack, AttackCounts, Target } from "./attack.js";
import type { Order, Report } from "./process.js";
import { runBystander, type BystanderResults } from "./bystander.js";
import type { BenchSettings, Row } from "../row.js";
import type { NodeProcess } from "../servers/server-process.js";
import { watchMemory } from "../servers/process-tree.js";
import { latencyFigures } from "../statistics.js";
import { prepareTarget, startTarget, type TargetFiles } from "./target.js";

/** Time limit in milliseconds for an attacker to report its results. */
const reportMs = 5_000;
/** Pause in milliseconds after an attack, before the resources that are still in use are measured. */
const settleMs = 2_000;
const mib = 1024 ** 2;

/** Runs each attack against a new node. */
export async function benchHostile({ directory, seconds, say, only = "" }: BenchSettings): Promise<Row[]> {
  const chosen = Object.entries(attacks).filter(([name]) => name.toLowerCase().includes(only.toLowerCase()));
  if (chosen.length === 0) {
    throw new Error(`No attack's name contains "${only}"; there are: ${Object.keys(attacks).join("; ")}.`);
  }
  say("making blocks to ask for");
  const files = await prepareTarget(directory);
  const rows: Row[] = [];
  for (const [name, attack] of chosen) {
    say(name);
    rows.push(await endure(name, attack, files, Math.max(5, 4 * seconds)));
  }
  return rows;
}

async function endure(name: string, attack: Attack, files: TargetFiles, seconds: number): Promise<Row> {
  const { node, target } = await startTarget(files, attack);
  try {
    await sleep(settleMs / 2);
    const before = await readFigures(node, target);
    const attacker = startAttack({ name, target });
    const memory = watchMemory(node.pid);
    const witness = await runBystander({ port: node.port, seconds, network: target.genesisHash });
    const counts = await attacker.stop();
    await sleep(settleMs);
    const { rssBytes, socketBytes } = memory.stop();
    const after = await readFigures(node, target);
    const ended = node.exitCode();
    const notes = [
      ...(ended === undefined ? [] : [`The node ended with ${ended}.`]),
      ...(counts === undefined ? ["The attacker did not tell what it did."] : []),
    ];
    return {
      name,
      figures: {
        ...witnessFigures(witness),
        "memory before MiB": before.rssBytes / mib,
        ...(rssBytes !== undefined && { "peak MiB": rssBytes / mib }),
        "after MiB": after.rssBytes / mib,
        ...(socketBytes !== undefined && { "sockets' peak MiB": socketBytes / mib }),
        "log lines": node.logLines(),
        "uncaught before": before.uncaught,
        "uncaught after": after.uncaught,
        "requests held after": after.activeRequests,
        ...counts,
      },
      ...(notes.length > 0 && { note: notes.join(" ") }),
    };
  } finally {
    await node.stop();
  }
}

function witnessFigures({ health, head, writing }: BystanderResults): Record<string, number> {
  return {
    ...latencyFigures(health.latencies, "/health "),
    "/health max ms": health.latencies.at(-1) ?? NaN,
    "/health refused": health.refused,
    "/health failed": health.failed,
    "/chain/head answered": head.answered,
    "/chain/head refused": head.refused,
    "/chain/head failed": head.failed,
    "honest transactions": writing.blocks.length,
    "in a block after, p50": writing.blocks[Math.floor(writing.blocks.length / 2)] ?? NaN,
    "in a block after, max": writing.blocks.at(-1) ?? NaN,
    "honest refused": writing.refused,
    "honest lost": writing.lost,
  };
}

/** Runs an attack in a process until it is stopped. Returns no results if the process must be killed. */
function startAttack(order: Order): { stop(): Promise<AttackCounts | undefined> } {
  const child = fork(fileURLToPath(new URL("process.js", import.meta.url)), {
    execArgv: ["--no-deprecation"],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
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

/** Figures of a node before or after an attack. */
interface NodeFigures {
  readonly rssBytes: number;
  readonly uncaught: number;
  readonly activeRequests: number;
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
  };
}
