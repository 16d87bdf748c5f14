import test from "ava";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { countProcessErrors, ProcessErrors } from "../../src/health/process-errors.js";
import { askJson } from "../helpers/wire/plain-client.js";
import { startCli } from "../helpers/nodes/run-cli.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";

interface HealthJson {
  readonly errors: {
    readonly uncaught_total: number;
    readonly unhandled_rejection_total: number;
    readonly last_uncaught?: { readonly message: string; readonly source: string; readonly at: number };
  };
}

test("counts and logs uncaught errors, and keeps running", async (t) => {
  const dir = await temporaryDirectory(t);
  const fault = join(dir, "fault.mjs");
  await writeFile(
    fault,
    `process.on("SIGUSR2", () => {
      setTimeout(() => { throw new Error("thrown by nobody's request\\nsecond line"); });
      Promise.reject(new Error("rejected"));
    });`,
  );
  const node = await startCli(t, ["start", "--data-dir", dir, "--host", "127.0.0.1", "--rpc-port", "0"], {
    NODE_OPTIONS: `--import=${pathToFileURL(fault).href}`,
  });
  const before = await askJson<HealthJson>(node.port, "/health");
  t.like(before.errors, { uncaught_total: 0, unhandled_rejection_total: 0 });

  node.child.kill("SIGUSR2");
  await until(async () => {
    const { errors } = await askJson<HealthJson>(node.port, "/health");
    return errors.uncaught_total === 1 && errors.unhandled_rejection_total === 1;
  });
  const { errors } = await askJson<HealthJson>(node.port, "/health");
  t.like(errors.last_uncaught, { message: "thrown by nobody's request", source: "uncaughtException" });
  await until(() => node.stderr().includes("Uncaught exception") && node.stderr().includes("Unhandled rejection"));
  node.child.kill("SIGTERM");
  t.is(await node.ended, 0);
});

test("only counts uncaught exceptions of an embedding process", (t) => {
  const errors = new ProcessErrors();
  const stop = countProcessErrors(errors);
  // The types of Node.js lack this event for emit.
  const emit = process.emit.bind(process) as (event: string, error: Error, kind: string) => boolean;
  emit("uncaughtExceptionMonitor", new Error("boom"), "uncaughtException");
  emit("uncaughtExceptionMonitor", new Error("rejected"), "unhandledRejection");
  stop();
  emit("uncaughtExceptionMonitor", new Error("later"), "uncaughtException");
  t.like(errors.counters, { uncaughtTotal: 1n, unhandledRejectionTotal: 1n, lastUncaught: { message: "boom" } });
});
