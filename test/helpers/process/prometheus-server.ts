/** A real Prometheus with the alerts of deploy/, if one is installed. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freePort } from "../nodes/free-port.js";
import { ask, askJson } from "../wire/plain-client.js";
import { collect } from "../nodes/run-cli.js";
import { type Teardown, temporaryDirectory } from "../nodes/teardown.js";
import { until } from "../nodes/until.js";

/**
 * Starts Prometheus on a metrics port, with the rules of deploy/. A minute in the rules lasts two seconds, except in
 * `for:`, so that an alert must hold for longer than one scrape interval.
 */
export async function startPrometheus(t: Teardown, metricsPort: number) {
  const dir = await temporaryDirectory(t);
  const rules = await readFile("deploy/prometheus/alerts.yml", "utf8");
  await writeFile(
    join(dir, "alerts.yml"),
    rules.replaceAll(/for: (\d+)m/g, (_, minutes: string) => `for: ${2000 * Number(minutes)}ms`),
  );
  // /metrics waits 1 s for an unreachable database, so the scrape timeout must be longer.
  const config = {
    global: { scrape_interval: "1500ms", scrape_timeout: "1500ms", evaluation_interval: "500ms" },
    rule_files: ["alerts.yml"],
    scrape_configs: [{ job_name: "gatehouse", static_configs: [{ targets: [`127.0.0.1:${metricsPort}`] }] }],
  };
  await writeFile(join(dir, "prometheus.yml"), JSON.stringify(config));
  const port = await freePort();
  const child = spawn("prometheus", [
    ...[`--config.file=${dir}/prometheus.yml`, `--storage.tsdb.path=${dir}/data`],
    ...[`--web.listen-address=127.0.0.1:${port}`, "--log.level=warn"],
  ]);
  const output = collect(child);
  const ended = once(child, "close");
  t.teardown(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  await until(() => {
    if (child.exitCode !== null) {
      throw new Error(`Prometheus has ended: ${output.stderr()}`);
    }
    return ask(port, "/-/ready").then(
      ({ status }) => status === 200,
      () => false,
    );
  }, "Prometheus is ready");
  return {
    /** Resolves to the value of the first series of a query; undefined without one. */
    async query(expression: string): Promise<string | undefined> {
      const path = `/api/v1/query?query=${encodeURIComponent(expression)}`;
      const { data } = await askJson<{ data: { result: { value: [number, string] }[] } }>(port, path);
      return data.result[0]?.value[1];
    },
    /** Resolves to the names of firing alerts. */
    async firing(): Promise<string[]> {
      const { data } = await askJson<{ data: { alerts: { state: string; labels: { alertname: string } }[] } }>(
        port,
        "/api/v1/alerts",
      );
      return data.alerts.filter(({ state }) => state === "firing").map(({ labels }) => labels.alertname);
    },
  };
}
