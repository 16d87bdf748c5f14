/** `gatehouse health`: shows the health of a running node. */
import type { Command } from "commander";
import { type HealthBody, requestHealth } from "./calls/request-node.js";
import { ExitError } from "./usage/errors.js";
import { addNodeFlags, type NodeFlags } from "./usage/flags.js";
import { ago, duration, paint, printResult, table } from "./terminal/output.js";

export function addHealth(command: Command): void {
  addNodeFlags(command)
    .addHelpText("after", "\nExit codes: 0 ok, degraded or dormant; 1 failing; 3 not reachable.")
    .action(async (flags: NodeFlags) => {
      const { status, text, health } = await requestHealth(flags.node);
      printResult(flags, text, () => describe(health));
      if (status !== 200) {
        throw new ExitError("");
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
        state.since === null ? "" : ago(state.since),
        describeExtra(state),
      ]),
    ]),
  ];
}

/** Returns the status line, with the errors of failed subsystems if the node is failing or degraded. */
function headline({ status, version, version_name: name, uptime_s: uptimeS, subsystems }: HealthBody): string[] {
  const causes = Object.values(subsystems)
    .filter((state) => state.status === "failed" && (status === "failing" || status === "degraded"))
    .flatMap(({ lastError }) => lastError?.message ?? [])
    .map((message) => (/[.!?]$/.test(message) ? message : `${message}.`));
  const label = paint(["bold", colors[status]], status);
  const rest = `${version} "${name}", up ${duration(uptimeS)}`;
  return causes.length === 0 ? [`${label}   ${rest}`] : [`${label}   ${causes.join(" ")}`, rest];
}

/** Returns the progress of a subsystem that catches up, or else the reason for its status. */
function describeExtra({
  extra: { sync, snapshot, reason } = {},
  lastError,
}: HealthBody["subsystems"][string]): string {
  const leftS = (sync ?? snapshot)?.left_s ?? null;
  const left = leftS === null ? "" : `, ${duration(leftS)} left`;
  if (sync !== undefined) {
    return paint("yellow", `catching up: block ${sync.block} of ${sync.targetBlock}, ${sync.blocks_per_s}/s${left}`);
  }
  if (snapshot !== undefined) {
    const { block, done_bytes: done, total_bytes: total } = snapshot;
    const percent = total === 0 ? 100 : Math.floor((100 * done) / total);
    return paint("yellow", `loading the snapshot of block ${block}: ${percent} %${left}`);
  }
  return reason ?? lastError?.message ?? "";
}

function portOf(health: HealthBody, name: string): string {
  const port = health.ports[name];
  if (port === undefined) {
    return "";
  }
  return port.drifted ? `${port.actual} ${paint("yellow", `(requested ${port.requested})`)}` : String(port.actual);
}
