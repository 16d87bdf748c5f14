/** `gatehouse health`: shows the health of a running node. */
import type { Command } from "commander";
import { requestHealth } from "./calls/request-node.js";
import { ExitError, exitCodes } from "./usage/errors.js";
import { addNodeFlags, type NodeFlags } from "./usage/flags.js";
import { duration, paint, print, table } from "./terminal/output.js";

/** Fields of GET /health that this command shows. */
interface HealthBody {
  version: string;
  version_name: string;
  accepting: boolean;
  mempool_size: number | null;
  uptime_s: number;
  status: "ok" | "degraded" | "dormant" | "failing";
  boot: {
    complete: boolean;
    steps_total: number;
    steps_ready: number;
    steps_failed: number;
    steps_skipped: number;
    current: string | null;
  };
  subsystems: Record<string, SubsystemBody>;
  ports: Record<string, { requested: number; actual: number; drifted: boolean }>;
  main_loop: { heartbeat_age_s: number | null; iterations_total: number; exited: boolean; exit_reason: string | null };
  errors: { uncaught_total: number; unhandled_rejection_total: number };
}

interface SyncBody {
  block: number;
  targetBlock: number;
  blocks_per_s: number;
  left_s: number | null;
}

interface SnapshotBody {
  block: number;
  done_bytes: number;
  total_bytes: number;
  left_s: number | null;
}

interface SubsystemBody {
  status: string;
  since: number | null;
  lastError: { message: string } | null;
  extra?: { reason?: string; sync?: SyncBody; snapshot?: SnapshotBody };
}

export function addHealth(command: Command): void {
  addNodeFlags(command)
    .addHelpText("after", "\nExit codes: 0 ok, degraded or dormant; 1 failing; 3 not reachable.")
    .action(async (flags: NodeFlags) => {
      const { status, text } = await requestHealth(flags.node);
      print(...(flags.json === true ? [text] : describe(JSON.parse(text) as HealthBody)));
      if (status !== 200) {
        throw new ExitError("", exitCodes.failed);
      }
    });
}

const colors = { ok: "green", degraded: "yellow", dormant: "yellow", failing: "red" } as const;
const subsystemColors: Readonly<Record<string, "green" | "red" | "yellow" | "dim">> = {
  ready: "green",
  failed: "red",
  running: "yellow",
  pending: "yellow",
};

function describe(health: HealthBody): string[] {
  const { boot, main_loop: loop, errors } = health;
  const steps = [
    `${boot.steps_ready} ready`,
    boot.steps_failed > 0 ? paint("red", `${boot.steps_failed} failed`) : "",
    boot.steps_skipped > 0 ? `${boot.steps_skipped} skipped` : "",
  ].filter((part) => part !== "");
  const lastTick = loop.heartbeat_age_s === null ? "no tick yet" : `last tick ${duration(loop.heartbeat_age_s)} ago`;
  return [
    ...headline(health),
    "",
    ...table([
      ["", ""],
      ["accepting", health.accepting ? "yes" : paint("yellow", "no")],
      [
        "pending",
        health.mempool_size === null
          ? paint("red", "unknown: the database does not respond")
          : String(health.mempool_size),
      ],
      [
        "boot",
        `${boot.complete ? "complete" : `at ${boot.current ?? "?"}`}: ${steps.join(", ")} of ${boot.steps_total}`,
      ],
      [
        "main loop",
        loop.exited ? paint("red", `exited: ${loop.exit_reason ?? ""}`) : `${lastTick}, ${loop.iterations_total} ticks`,
      ],
      ["errors", `${errors.uncaught_total} uncaught, ${errors.unhandled_rejection_total} unhandled rejections`],
    ]).slice(1),
    "",
    ...table([
      ["SUBSYSTEM", "STATUS", "PORT", "SINCE", ""],
      ...Object.entries(health.subsystems).map(([name, state]) => [
        name,
        paint(subsystemColors[state.status] ?? "dim", state.status),
        portOf(health, name),
        state.since === null ? "" : `${duration(Math.max(0, Date.now() - state.since) / 1000)} ago`,
        describeExtra(state),
      ]),
    ]),
  ];
}

/** Returns the status line, with the causes if the node is failing or degraded. */
function headline(health: HealthBody): string[] {
  const { status, version, version_name: name, uptime_s: uptimeS } = health;
  const causes = causesOf(health);
  const label = paint(["bold", colors[status]], status);
  const rest = `${version} "${name}", up ${duration(uptimeS)}`;
  return causes.length === 0 ? [`${label}   ${rest}`] : [`${label}   ${causes.join(" ")}`, rest];
}

/** Returns the errors of the failed subsystems that make the node failing or degraded. */
function causesOf({ status, subsystems }: HealthBody): string[] {
  return status === "failing" || status === "degraded"
    ? Object.values(subsystems).flatMap(({ status: state, lastError }) =>
        state === "failed" && lastError !== null ? [asSentence(lastError.message)] : [],
      )
    : [];
}

function asSentence(message: string): string {
  return /[.!?]$/.test(message) ? message : `${message}.`;
}

/** Returns the progress of a subsystem that catches up, or else the reason for its status. */
function describeExtra({ extra, lastError }: SubsystemBody): string {
  if (extra?.sync !== undefined) {
    const { block, targetBlock, blocks_per_s: rate, left_s: leftS } = extra.sync;
    const left = leftS === null ? "" : `, ${duration(leftS)} left`;
    return paint("yellow", `catching up: block ${block} of ${targetBlock}, ${rate}/s${left}`);
  }
  if (extra?.snapshot !== undefined) {
    const { block, done_bytes: done, total_bytes: total, left_s: leftS } = extra.snapshot;
    const left = leftS === null ? "" : `, ${duration(leftS)} left`;
    const percent = total === 0 ? 100 : Math.floor((100 * done) / total);
    return paint("yellow", `loading the snapshot of block ${block}: ${percent} %${left}`);
  }
  return extra?.reason ?? lastError?.message ?? "";
}

function portOf(health: HealthBody, name: string): string {
  const port = health.ports[name];
  if (port === undefined) {
    return "";
  }
  return port.drifted ? `${port.actual} ${paint("yellow", `(requested ${port.requested})`)}` : String(port.actual);
}
