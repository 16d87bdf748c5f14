/** Steps of a boot as `/health` counts them. A dormant node defers some of them until it wakes. */
import type { Config } from "../../config/config.js";
import { type SubsystemName, subsystemNames } from "../../health/subsystems.js";
import { PortTakenError } from "../../rpc/port/listen.js";
import type { NodeCore } from "./core.js";

interface StepRules {
  /** True if a dormant node defers the step until it wakes. */
  readonly waits?: true;
  /** True if the boot continues after an error of the step. */
  readonly mayFail?: true;
  /** True if another process does the work of the step, and reports it to the control service. */
  readonly isElsewhere?: true;
}

/** Rules of each step, in the order of the boot. A step with the name of a subsystem also sets its status. */
export const bootSteps = {
  database: {},
  identity: {},
  genesis: {},
  chain: { mayFail: true },
  peers: {},
  control: {},
  rpc: {},
  metrics: { mayFail: true },
  signaling: { isElsewhere: true },
  mcp: { waits: true, mayFail: true },
  tlsnotary: { waits: true, mayFail: true },
  omni: {},
  dtr: { waits: true, mayFail: true },
  l2ps: { isElsewhere: true },
  main_loop: { waits: true },
} as const satisfies Record<string, StepRules>;

type StepName = keyof typeof bootSteps;
type OptionalName = StepName & SubsystemName;

const reportedElsewhere = "Another process runs it, and has not reported it to the control service yet.";

/** Returns the reason why a node with this configuration never runs a step; undefined for other steps. */
function whyDisabled(name: OptionalName, config: BootConfig): string | undefined {
  const { isElsewhere }: StepRules = bootSteps[name];
  if (isElsewhere) {
    return reportedElsewhere;
  }
  const reasons: Partial<Record<OptionalName, string | false>> = {
    metrics: !config.metricsEnabled && "--metrics-enabled is not set.",
    mcp: !config.mcpEnabled && "--mcp-enabled is not set.",
    tlsnotary: !config.tlsnotaryEnabled && "--tlsnotary-enabled is not set.",
  };
  return reasons[name] || undefined;
}

/** Returns the reason why a node without peers defers a step. */
function whyDeferred({ role }: BootConfig): string {
  return role === "standby"
    ? "The node is a standby, which has no peers: it runs this once it takes over as the writer."
    : "The node is dormant: it has no peers. It wakes when one is verified or added.";
}

type BootConfig = Pick<Config, "mcpEnabled" | "metricsEnabled" | "portDrift" | "role" | "tlsnotaryEnabled">;

export type BootSteps = ReturnType<typeof createBootSteps>;

/** Creates the steps. Those that the configuration disables are skipped at once, before the boot reaches them. */
export function createBootSteps({
  config,
  lifecycle: { isDormant, signal },
  progress,
  subsystems,
}: Pick<NodeCore, "lifecycle" | "progress" | "subsystems"> & { readonly config: BootConfig }) {
  const deferred: (() => unknown)[] = [];
  const stopped = new Promise<never>((_, reject) =>
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true }),
  );
  stopped.catch(() => undefined);

  /**
   * Waits for work between steps.
   *
   * @throws the signal's reason as soon as the node stops. The work itself continues, and a shutdown hook that it adds
   *   later still runs.
   */
  async function unlessStopped<T>(work: T | Promise<T>): Promise<T> {
    signal.throwIfAborted();
    return await Promise.race([work, stopped]);
  }

  /** Runs a step. Its error ends the boot. */
  async function run<T>(name: StepName, work: () => T | Promise<T>): Promise<T> {
    signal.throwIfAborted();
    return await unlessStopped(progress.runStep(name, work));
  }

  for (const name of subsystemNames) {
    const reason = whyDisabled(name, config);
    if (reason !== undefined) {
      subsystems.set(name, { enabled: false });
      progress.skip(name, reason);
    }
  }

  /** Runs a step that provides no values: now, when the node wakes, or not at all if the configuration disables it. */
  async function runOptional(name: OptionalName, work: () => unknown): Promise<void> {
    const { waits, mayFail }: StepRules = bootSteps[name];
    if (whyDisabled(name, config) !== undefined) {
      return;
    }
    if (waits && isDormant()) {
      progress.skip(name, whyDeferred(config));
      // The boot is over by then, so an error of the step can no longer end it.
      deferred.push(() => progress.runStep(name, work).catch(() => undefined));
    } else {
      await run(name, work).catch((error: unknown) => {
        const isDenied = config.portDrift === "deny" && error instanceof PortTakenError;
        if (!mayFail || isDenied) {
          throw error;
        }
      });
    }
  }

  /** Runs the deferred steps in their order, unless the node stops. */
  async function runDeferred(): Promise<void> {
    for (const step of deferred.splice(0)) {
      if (!signal.aborted) {
        await step();
      }
    }
  }

  return { run, runOptional, unlessStopped, runDeferred };
}
