/** A node that cannot write its log continues, and counts the lost lines. */
import test, { type ExecutionContext } from "ava";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import { parseMetrics } from "../helpers/process/prometheus.js";
import { type RunningCli, startCli } from "../helpers/nodes/run-cli.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";
import { testUnless } from "../helpers/nodes/when.js";

/** Starts a node that throws, rejects and warns on SIGUSR2. */
async function startFaulty(t: ExecutionContext, wrapper: readonly string[] = []): Promise<RunningCli> {
  const dir = await temporaryDirectory(t);
  const fault = join(dir, "fault.mjs");
  await writeFile(
    fault,
    `process.on("SIGUSR2", () => {
      setTimeout(() => { throw new Error("uncaught"); });
      Promise.reject(new Error("rejected"));
      process.emitWarning("a warning");
    });`,
  );
  const ports = ["--rpc-port", "0", "--omni-port", "0", "--metrics-enabled", "--metrics-port", "0"];
  const args = ["start", "--data-dir", dir, "--host", "127.0.0.1", ...ports];
  return await startCli(t, args, { NODE_OPTIONS: `--import=${pathToFileURL(fault).href}` }, wrapper);
}

async function lostLines(node: RunningCli): Promise<number> {
  const { ports } = await askJson<{ ports: { metrics: { actual: number } } }>(node.port, "/health");
  const { text } = await ask(ports.metrics.actual, "/metrics");
  return parseMetrics(text).value("gatehouse_log_lines_lost_total", {})!;
}

/** Checks that a node survives errors that it cannot log. */
async function expectSurvival(t: ExecutionContext, node: RunningCli): Promise<void> {
  const before = await lostLines(node);
  node.child.kill("SIGUSR2");
  await until(async () => {
    const { errors } = await askJson<{ errors: Record<string, number> }>(node.port, "/health");
    return errors["uncaught_total"] === 1 && errors["unhandled_rejection_total"] === 1;
  });
  await until(async () => {
    await ask(node.port, "/version");
    return (await lostLines(node)) >= before + 4;
  });
  t.is(node.child.exitCode, null);
  node.child.kill("SIGTERM");
  t.is(await node.ended, 0);
}

const testFull = testUnless(existsSync("/dev/full") ? undefined : "there is no /dev/full");

testFull("a log on a full disk does not end a node", async (t) => {
  await expectSurvival(t, await startFaulty(t, ["sh", "-c", 'exec "$@" 2>/dev/full', "sh"]));
});

test("a log whose reader is gone does not end a node", async (t) => {
  const node = await startFaulty(t);
  node.child.stderr!.destroy();
  node.child.stdout!.destroy();
  await expectSurvival(t, node);
});
