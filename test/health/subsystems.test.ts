import test from "ava";
import type { DescEnum } from "@bufbuild/protobuf";
import { readFile } from "node:fs/promises";
import {
  HealthStatusSchema,
  ProbeStatusSchema,
  SubsystemStatus,
  SubsystemStatusSchema,
} from "../../gen/gatehouse/health/v1/health_pb.js";
import { commentOf } from "../../src/rpc/describe/comments.js";
import { createBootProgress } from "../../src/health/boot-progress.js";
import { createSubsystems, subsystemNames } from "../../src/health/subsystems.js";

function setUp() {
  const clock = { nowMs: 1000 };
  return { clock, subsystems: createSubsystems(() => clock.nowMs) };
}

test("starts with every subsystem pending, without a transition", (t) => {
  const { subsystems } = setUp();
  t.deepEqual(Object.keys(subsystems.all()), [...subsystemNames]);
  for (const state of Object.values(subsystems.all())) {
    t.is(state.status, SubsystemStatus.PENDING);
    t.is(state.sinceMs, undefined);
  }
});

test("changes since only with the status", (t) => {
  const { clock, subsystems } = setUp();
  subsystems.set("rpc", { status: SubsystemStatus.READY });
  clock.nowMs = 2000;
  subsystems.set("rpc", { status: SubsystemStatus.READY, port: 5 });
  t.like(subsystems.get("rpc"), { sinceMs: 1000n, port: 5 });
  subsystems.set("rpc", { status: SubsystemStatus.FAILED, error: { message: "gone" } });
  t.like(subsystems.get("rpc"), { sinceMs: 2000n, port: 5, lastError: { atMs: 2000n, message: "gone" } });
});

test("clears the reason with its status, and the error once its cause is gone", (t) => {
  const { subsystems } = setUp();
  subsystems.set("mcp", { status: SubsystemStatus.SKIPPED, extra: { reason: "dormant" } });
  subsystems.set("mcp", { requestedPort: 3001 });
  t.deepEqual(subsystems.get("mcp").extra, { reason: "dormant" });
  subsystems.set("mcp", { status: SubsystemStatus.FAILED, error: { message: "boom", source: "mcp" } });
  subsystems.set("mcp", { status: SubsystemStatus.RUNNING });
  t.is(subsystems.get("mcp").extra, undefined);
  t.is(subsystems.get("mcp").lastError?.message, "boom");
  for (const status of [SubsystemStatus.READY, SubsystemStatus.SKIPPED]) {
    subsystems.set("mcp", { status: SubsystemStatus.FAILED, error: { message: "boom" } });
    subsystems.set("mcp", { status });
    t.is(subsystems.get("mcp").lastError, undefined);
  }
  subsystems.set("mcp", { error: { message: "a part" } });
  subsystems.set("mcp", { port: 5 });
  t.is(subsystems.get("mcp").lastError?.message, "a part");
  subsystems.set("mcp", { error: null });
  t.is(subsystems.get("mcp").lastError, undefined);
});

test("ignores a change without effect", (t) => {
  const { subsystems } = setUp();
  subsystems.set("main_loop", { status: SubsystemStatus.READY, extra: { taskErrors: 2n } });
  const before = subsystems.all();
  subsystems.set("main_loop", { status: SubsystemStatus.READY, extra: { sync: undefined } });
  subsystems.set("main_loop", { extra: { taskErrors: 2n } });
  subsystems.set("chain", { extra: { sync: undefined } });
  t.is(subsystems.all(), before);
  subsystems.set("main_loop", { extra: { taskErrors: 3n } });
  t.not(subsystems.all(), before);
  t.is(before.main_loop.extra?.taskErrors, 2n, "a snapshot never changes");
});

test("counts boot steps, and sets the subsystems of the same name", async (t) => {
  const { subsystems } = setUp();
  const boot = createBootProgress(4, subsystems);
  t.deepEqual(boot.state(), {
    complete: false,
    stepsTotal: 4,
    stepsReady: 0,
    stepsFailed: 0,
    stepsSkipped: 0,
    current: undefined,
  });
  t.is(await boot.runStep("key", () => 42), 42);
  await boot.runStep("chain", () => {
    t.is(subsystems.get("chain").status, SubsystemStatus.RUNNING);
    t.is(boot.state().current, "chain");
  });
  t.is(subsystems.get("chain").status, SubsystemStatus.READY);
  boot.skip("mcp", "not wanted");
  t.like(subsystems.get("mcp"), { status: SubsystemStatus.SKIPPED, extra: { reason: "not wanted" } });
  await t.throwsAsync(
    boot.runStep("omni", () => Promise.reject(new Error("no port"))),
    { message: "no port" },
  );
  t.like(subsystems.get("omni"), { status: SubsystemStatus.FAILED, lastError: { message: "no port" } });
  t.like(boot.state(), { complete: true, stepsReady: 2, stepsFailed: 1, stepsSkipped: 1, current: undefined });
});

test("counts a skipped step once if it runs later", async (t) => {
  const { subsystems } = setUp();
  const boot = createBootProgress(1, subsystems);
  boot.skip("mcp", "not yet");
  t.like(boot.state(), { complete: true, stepsSkipped: 1 });
  await boot.runStep("mcp", () => t.like(boot.state(), { complete: true, stepsSkipped: 0, current: "mcp" }));
  t.like(boot.state(), { complete: true, stepsReady: 1, stepsSkipped: 0 });
  t.is(subsystems.get("mcp").status, SubsystemStatus.READY);
});

test("names every subsystem in the contract's comment", (t) => {
  const comment = commentOf("gatehouse.health.v1.HealthSnapshot.subsystems").replace(/\s+/g, " ");
  t.true(comment.includes(subsystemNames.join(", ")), comment);
});

test("documents every status word of /health, and no other", async (t) => {
  const page = await readFile("docs/operations.md", "utf8");
  const wordsOf = ({ values, sharedPrefix = "" }: DescEnum): string[] =>
    values.filter(({ number }) => number > 0).map(({ name }) => name.slice(sharedPrefix.length).toLowerCase());
  const tables = [
    ["Status", wordsOf(HealthStatusSchema)],
    ["State of a subsystem", wordsOf(SubsystemStatusSchema)],
    ["Failed", [...subsystemNames]],
    ["Probe", wordsOf(ProbeStatusSchema)],
  ] as const;
  for (const [heading, words] of tables) {
    const [, rows = ""] = new RegExp(`^\\| ${heading} +\\|.*\\n\\| -.*\\n((?:\\|.*\\n)+)`, "m").exec(page) ?? [];
    t.deepEqual([...rows.matchAll(/^\| `(\w+)`/gm)].map(([, word]) => word!).sort(), [...words].sort(), heading);
  }
});
