/** Steps of the boot: their results, failures, and those that a dormant node defers. */
import test, { type ExecutionContext } from "ava";
import { SubsystemStatus } from "../../../gen/gatehouse/health/v1/health_pb.js";
import { createBootProgress } from "../../../src/health/boot-progress.js";
import { createSubsystems, subsystemNames } from "../../../src/health/subsystems.js";
import { bootSteps, createBootSteps } from "../../../src/node/lifecycle/boot-steps.js";
import { createLifecycle } from "../../../src/node/lifecycle/lifecycle.js";

const allEnabled = {
  portDrift: "allow",
  mcpEnabled: true,
  metricsEnabled: true,
  role: "writer",
  tlsnotaryEnabled: true,
} as const;

function setUp(
  t: ExecutionContext,
  count: number,
  changed: Partial<Parameters<typeof createBootSteps>[0]["config"]> = {},
) {
  const lifecycle = createLifecycle();
  t.teardown(() => lifecycle.stop());
  const subsystems = createSubsystems(Date.now);
  const progress = createBootProgress(count, subsystems);
  return {
    lifecycle,
    progress,
    subsystems,
    steps: createBootSteps({ config: { ...allEnabled, ...changed }, lifecycle, progress, subsystems }),
  };
}

const fail = (): Promise<never> => Promise.reject(new Error("no"));

test("each subsystem has a step", (t) => {
  t.deepEqual(
    subsystemNames.filter((name) => !(name in bootSteps)),
    [],
  );
});

test("a failure ends the boot, unless the step may fail", async (t) => {
  const { steps, progress, subsystems } = setUp(t, 6);
  t.is(await steps.run("database", () => 1), 1);
  await steps.runOptional("mcp", fail);
  t.is(subsystems.get("mcp").status, SubsystemStatus.FAILED);
  await t.throwsAsync(steps.run("rpc", fail), { message: "no" });
  await t.throwsAsync(steps.runOptional("main_loop", fail), { message: "no" });
  t.like(progress.state(), { stepsReady: 1, stepsFailed: 3 });
});

test("a dormant node defers steps, and later runs them in the same order", async (t) => {
  const { lifecycle, progress, steps, subsystems } = setUp(t, 6, { tlsnotaryEnabled: false });
  const ran: string[] = [];
  lifecycle.setDormant(true);
  await steps.runOptional("mcp", () => ran.push("mcp"));
  await steps.run("omni", () => ran.push("omni"));
  await steps.runOptional("tlsnotary", () => ran.push("tlsnotary"));
  await steps.runOptional("main_loop", () => ran.push("main_loop"));
  t.deepEqual(ran, ["omni"]);
  t.like(progress.state(), { complete: true, stepsReady: 1, stepsSkipped: 5 });
  t.like(subsystems.get("tlsnotary"), { enabled: false, extra: { reason: "--tlsnotary-enabled is not set." } });
  t.like(subsystems.get("mcp"), { enabled: true, status: SubsystemStatus.SKIPPED });
  t.regex(subsystems.get("mcp").extra?.reason ?? "", /^The node is dormant: it has no peers\. It wakes/);
  await steps.runDeferred();
  t.deepEqual(ran, ["omni", "mcp", "main_loop"]);
  t.like(progress.state(), { complete: true, stepsReady: 3, stepsSkipped: 3 });
});

test("a standby defers the steps of a dormant node for another reason", async (t) => {
  const { lifecycle, steps, subsystems } = setUp(t, 15, { role: "standby" });
  lifecycle.setDormant(true);
  for (const name of ["mcp", "tlsnotary", "dtr", "main_loop"] as const) {
    await steps.runOptional(name, () => t.fail());
    const reason = "The node is a standby, which has no peers: it runs this once it takes over as the writer.";
    t.is(subsystems.get(name).extra?.reason, reason);
  }
});

test("what the configuration disables is skipped before the first step", (t) => {
  const { progress, subsystems } = setUp(t, 15, { mcpEnabled: false, metricsEnabled: false, tlsnotaryEnabled: false });
  t.like(progress.state(), { complete: false, stepsReady: 0, stepsSkipped: 5 });
  for (const name of subsystemNames) {
    const { enabled, status, extra } = subsystems.get(name);
    t.is(enabled, !["metrics", "signaling", "mcp", "tlsnotary", "l2ps"].includes(name), name);
    t.is(status, enabled ? SubsystemStatus.PENDING : SubsystemStatus.SKIPPED, name);
    t.is(extra?.reason === undefined, enabled, name);
  }
});

test("a boot that is aborted neither waits for the running step nor starts another", async (t) => {
  const { lifecycle, steps } = setUp(t, 2);
  setImmediate(() => lifecycle.stop());
  await t.throwsAsync(
    steps.run("chain", () => new Promise(() => undefined)),
    { message: "The node was stopped." },
  );
  await t.throwsAsync(
    steps.run("peers", () => t.fail()),
    { message: "The node was stopped." },
  );
});
