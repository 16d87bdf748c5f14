/** Steps of a boot as `/health` counts them. A dormant node defers some of them until it wakes. */
import { SubsystemStatus } from "../../../gen/gatehouse/health/v1/health_pb.js";
import type { SubsystemName } from "../../health/subsystems.js";
import type { NodeCore } from "./core.js";

interface StepRules {
  /** True if a dormant node defers the step until it wakes. */
  readonly waits?: true;
  /** True if the boot continues after an error of the step. */
  readonly mayFail?: true;
  /** True if another process does the work of the step. */
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
  signaling: { waits: true, isElsewhere: true },
  mcp: { waits: true, mayFail: true },
  tlsnotary: { waits: true, mayFail: true },
  omni: {},
  dtr: { waits: true, mayFail: true },
  l2ps: { isElsewhere: true },
  main_loop: { waits: true },
} as const satisfies Record<string, StepRules>;

type StepName = keyof typeof bootSteps;
type OptionalName = StepName & SubsystemName;

const dormant = "The node is dormant: it has no peers.";
const reportedElsewhere = "Another process runs it, and has not reported it to the control service yet.";

export type BootSteps = ReturnType<typeof createBootSteps>;

export function createBootSteps({
  lifecycle: { isDormant, signal },
  progress,
  subsystems,
}: Pick<NodeCore, "lifecycle" | "progress" | "subsystems">) {
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

  function skip(name: SubsystemName, reason: string): void {
    subsystems.set(name, { enabled: false });
    progress.skip(name, reason);
  }

  /** Runs a step that provides no values: now, when the node wakes, or not at all for a given reason. */
  async function runOptional(name: OptionalName, work: () => unknown, whyDisabled?: string): Promise<void> {
    const { waits, mayFail }: StepRules = bootSteps[name];
    if (whyDisabled !== undefined) {
      skip(name, whyDisabled);
    } else if (waits && isDormant()) {
      progress.skip(name, dormant);
      // The boot is over by then, so an error of the step can no longer end it.
      deferred.push(() => progress.runStep(name, work).catch(() => undefined));
    } else {
      await run(name, work).catch((error: unknown) => {
        if (!mayFail) {
          throw error;
        }
      });
    }
  }

  /** Shows a step of another process as skipped, with the reason. */
  function showElsewhere(name: OptionalName): void {
    const { waits }: StepRules = bootSteps[name];
    if (!waits || !isDormant()) {
      skip(name, reportedElsewhere);
      return;
    }
    skip(name, dormant);
    deferred.push(() => {
      if (subsystems.get(name).status === SubsystemStatus.SKIPPED) {
        subsystems.set(name, { extra: { reason: reportedElsewhere } });
      }
    });
  }

  /** Runs the deferred steps in their order, unless the node stops. */
  async function runDeferred(): Promise<void> {
    for (const step of deferred.splice(0)) {
      if (!signal.aborted) {
        await step();
      }
    }
  }

  return { run, runOptional, showElsewhere, unlessStopped, runDeferred };
}
