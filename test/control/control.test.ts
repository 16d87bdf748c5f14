/** Control service: reports of other processes, their time to live, and access to the service. */
import { createClient } from "@connectrpc/connect";
import test from "ava";
import { mkdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { ControlService } from "../../gen/gatehouse/control/v1/control_pb.js";
import { SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { startMember, startTestNode, type TestNode } from "../helpers/nodes/start-node.js";
import type { HealthBody } from "../helpers/process/health-shape.js";
import { askJson } from "../helpers/wire/plain-client.js";
import { readFailure } from "../helpers/wire/rpc-clients.js";
import { runCli } from "../helpers/nodes/run-cli.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";
import { openSqlite } from "../helpers/databases/databases.js";

const health = (node: TestNode): Promise<HealthBody> => askJson<HealthBody>(node.port, "/health");

test("/health shows a report; the subsystem fails when it expires, and recovers with the next report", async (t) => {
  const node = await startMember(t);
  t.like((await health(node)).subsystems["signaling"], { status: "skipped", enabled: false });
  const report = (...args: string[]) => runCli(["report", ...args, "--data-dir", node.dir]);
  const first = await report("signaling", "ready", "--port", "3006", "--requested-port", "3005", "--lease", "2");
  t.is(first.code, 0, first.stderr);
  t.regex(first.stdout, /^signaling is ready until \d{4}-/);
  const ready = await health(node);
  t.like(ready.subsystems["signaling"], {
    status: "ready",
    enabled: true,
    port: 3006,
    requestedPort: 3005,
    lastError: null,
  });
  t.deepEqual(ready.ports["signaling"], { requested: 3005, actual: 3006, drifted: true });
  t.is(ready.status, "ok");

  await until(async () => (await health(node)).subsystems["signaling"]!.status === "failed");
  const expired = await health(node);
  t.is(expired.status, "degraded");
  t.regex((expired.subsystems["signaling"]!.lastError as { message: string }).message, /has not reported for 2 s/);
  await report("signaling", "ready", "--lease", "60");
  t.is((await health(node)).status, "ok");
  t.is((await health(node)).subsystems["signaling"]!.port, 3006);
});

test("the chain fails if its external consensus fails or stops reporting, and recovers with READY", async (t) => {
  const node = await startMember(t);
  const control = createClient(ControlService, node.control);
  await control.reportSubsystem({ name: "chain", status: SubsystemStatus.FAILED, error: "no quorum", leaseS: 60 });
  const failing = await health(node);
  t.like(failing, { status: "failing" });
  t.like(failing.subsystems["chain"], { status: "failed", lastError: { message: "no quorum", source: "consensus" } });
  await control.reportSubsystem({ name: "chain", status: SubsystemStatus.READY, leaseS: 1 });
  t.is((await health(node)).status, "ok");
  await until(async () => (await health(node)).status === "failing");
});

test("a READY report of the consensus does not change a chain that is skipped or corrupt", async (t) => {
  const node = await startTestNode(t);
  const control = createClient(ControlService, node.control);
  await control.reportSubsystem({ name: "chain", status: SubsystemStatus.READY, leaseS: 60 });
  t.is((await health(node)).subsystems["chain"]!.status, "skipped");

  const member = await startMember(t);
  await member.stop();
  await openSqlite(
    t,
    member.databaseFile,
  )("blocks")
    .where({ number: 0 })
    .update({ hash: `0x${"1".repeat(64)}` });
  const corrupt = await startTestNode(t, {}, member.dir);
  const other = createClient(ControlService, corrupt.control);
  await other.reportSubsystem({ name: "chain", status: SubsystemStatus.FAILED, error: "no quorum", leaseS: 60 });
  await other.reportSubsystem({ name: "chain", status: SubsystemStatus.READY, leaseS: 60 });
  t.is((await health(corrupt)).subsystems["chain"]!.status, "failed");
});

test("rejects invalid reports, and names the reason", async (t) => {
  const node = await startMember(t);
  const control = createClient(ControlService, node.control);
  const valid = { name: "l2ps", status: SubsystemStatus.READY, leaseS: 60 };
  const cases = [
    [{ ...valid, name: "rpc" }, /can report only chain, signaling, l2ps/],
    [{ ...valid, name: "__proto__" }, /can report only/],
    [{ ...valid, status: SubsystemStatus.SKIPPED }, /running, ready or failed/],
    [{ ...valid, status: SubsystemStatus.UNSPECIFIED }, /running, ready or failed/],
    [{ ...valid, leaseS: 0 }, /^lease_s must be a whole number from 1 to 3600, not/],
    [{ ...valid, leaseS: 3601 }, /^lease_s must be a whole number from 1 to 3600, not/],
    [{ ...valid, port: 70_000 }, /port must be a whole number from 1 to 65535, not/],
    [{ ...valid, status: SubsystemStatus.FAILED }, /requires an error message/],
  ] as const;
  for (const [report, reason] of cases) {
    const failure = readFailure(await t.throwsAsync(control.reportSubsystem(report)));
    t.is(failure.reason, "INVALID_REQUEST");
    t.regex(failure.message, reason);
  }
  for (const status of ["skipped", "toString"]) {
    const { code, stderr } = await runCli(["report", "l2ps", status, "--data-dir", node.dir]);
    t.is(code, 1);
    t.regex(stderr, /status must be running, ready or failed/, status);
  }
  t.is((await health(node)).subsystems["l2ps"]!.status, "skipped");
});

test("only the owner can access the socket and the token; a second node in the directory is rejected", async (t) => {
  const dir = await temporaryDirectory(t);
  const node = await startTestNode(t, { "control-port": "0" }, dir);
  for (const name of ["control.sock", "control.token"]) {
    t.is((await stat(join(dir, name))).mode & 0o777, 0o600, name);
  }
  const otherDatabase = `sqlite:${join(dir, "other.sqlite")}`;
  await t.throwsAsync(startTestNode(t, { database: otherDatabase }, dir), {
    message: /Another node is running with .*control\.sock; stop it/,
  });
  t.is((await health(node)).status, "dormant");
  await node.stop();
  // The directory is available again after the first node has stopped.
  await startTestNode(t, {}, dir);
});

test("a data directory whose path is too long for a socket stops the start, with a remedy", async (t) => {
  const dir = join(await temporaryDirectory(t), "d".repeat(120));
  await mkdir(dir);
  await t.throwsAsync(startTestNode(t, {}, dir), {
    message: /too long for a socket; give a shorter one with --control-socket/,
  });
  const node = await startTestNode(t, { "control-socket": join(await temporaryDirectory(t), "s") }, dir);
  t.is((await health(node)).status, "dormant");
});
