/** The alerts and the dashboard: their metrics and labels exist, and Prometheus accepts them. */
import test from "ava";
import { execFileSync, spawnSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { parse } from "yaml";
import { nodeMetrics } from "../../src/metrics/table.js";
import { errorCatalog } from "../../src/rpc/errors.js";
import { alertExamples, unitTestsOf } from "../helpers/process/alert-examples.js";
import { testKey } from "../helpers/chain/keys.js";
import { authorityDirectory, startMember } from "../helpers/nodes/start-node.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import { type PostgresServer, startPostgres } from "../helpers/databases/postgres-server.js";
import { startPrometheus } from "../helpers/process/prometheus-server.js";
import { parseMetrics } from "../helpers/process/prometheus.js";
import { startNodeProcess } from "../helpers/nodes/run-cli.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";
import { testUnless, whyNot } from "../helpers/nodes/when.js";

// AVA requires asynchronous setup before the first test is declared.
const noPrometheus = whyNot("prometheus", "--version");
const postgres = noPrometheus ?? (await startPostgres());
const testPrometheus = testUnless(typeof postgres === "string" ? postgres : undefined);
testPrometheus.after(() => (postgres as PostgresServer).remove());

const alertsFile = "deploy/prometheus/alerts.yml";

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly description: string; readonly runbook: string };
}

async function alerts(): Promise<Rule[]> {
  const { groups } = parse(await readFile(alertsFile, "utf8")) as { groups: { rules: Rule[] }[] };
  return groups.flatMap(({ rules }) => rules);
}

interface Dashboard {
  readonly panels: readonly {
    readonly id: number;
    readonly title: string;
    readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
    readonly targets: readonly { readonly expr: string }[];
  }[];
}

const dashboard = async (): Promise<Dashboard> =>
  JSON.parse(await readFile("deploy/grafana/gatehouse.json", "utf8")) as Dashboard;

async function metricsPortOf({ port }: { readonly port: number }): Promise<number> {
  const { ports } = await askJson<{ ports: { metrics: { actual: number } } }>(port, "/health");
  return ports.metrics.actual;
}

/** The names of all metrics of a node, with the suffixes of histograms. */
async function namesOf(t: Teardown): Promise<Set<string>> {
  const node = await startMember(t, { "metrics-enabled": true, "metrics-port": "0" });
  const { names } = parseMetrics((await ask(await metricsPortOf(node), "/metrics")).text);
  return new Set(names.flatMap((name) => [name, `${name}_bucket`, `${name}_count`, `${name}_sum`]));
}

async function expressions(): Promise<string[]> {
  return [
    ...(await alerts()).map(({ expr }) => expr),
    ...(await dashboard()).panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
  ];
}

const metricsIn = (expr: string): string[] => expr.match(/\b(gatehouse|nodejs|process)_\w+/g) ?? [];

test("a node has every metric of the alerts and the dashboard", async (t) => {
  const names = await namesOf(t);
  const exprs = await expressions();
  t.true(exprs.length > 25);
  for (const expr of exprs) {
    const used = metricsIn(expr);
    t.true(used.length > 0 || /\bup\{/.test(expr), expr);
    t.deepEqual(
      used.filter((name) => !names.has(name)),
      [],
      expr,
    );
  }
});

test("alerts and dashboard select existing labels and error codes", async (t) => {
  const outcomes = ["OK", ...Object.keys(errorCatalog)];
  let selected = 0;
  for (const expr of await expressions()) {
    for (const [, name, selectors] of expr.matchAll(/\b(gatehouse_\w+?)(?:_bucket|_count|_sum)?\{([^}]*)\}/g)) {
      const metric = nodeMetrics.find((row) => row.name === name);
      for (const [, label, value] of selectors!.matchAll(/(\w+)(?:=~|!~|!=|=)"([^"]*)"/g)) {
        // Prometheus adds the label instance.
        t.true(label === "instance" || metric?.labels.some((own) => own === label), expr);
        t.true(label !== "code" || outcomes.includes(value!), expr);
        selected++;
      }
    }
  }
  t.true(selected > 20, String(selected));
});

test("alerts have a severity, a summary and a description, and panels do not overlap", async (t) => {
  const rules = await alerts();
  t.is(new Set(rules.map(({ alert }) => alert)).size, rules.length);
  for (const { alert, labels, annotations } of rules) {
    t.true(["critical", "warning", "info"].includes(labels.severity), alert);
    t.regex(annotations.summary, /\.$/, alert);
    t.regex(annotations.description, /\.$/, alert);
  }
  const { panels } = await dashboard();
  t.is(new Set(panels.map(({ id }) => id)).size, panels.length);
  for (const [i, a] of panels.entries()) {
    t.true(a.gridPos.x + a.gridPos.w <= 24, a.title);
    for (const b of panels.slice(i + 1)) {
      const apart =
        a.gridPos.x + a.gridPos.w <= b.gridPos.x ||
        b.gridPos.x + b.gridPos.w <= a.gridPos.x ||
        a.gridPos.y + a.gridPos.h <= b.gridPos.y ||
        b.gridPos.y + b.gridPos.h <= a.gridPos.y;
      t.true(apart, `${a.title}, ${b.title}`);
    }
  }
});

const testPromtool = testUnless(whyNot("promtool", "--version"));

testPromtool("promtool accepts the alerts", (t) => {
  const output = execFileSync("promtool", ["check", "rules", alertsFile], { encoding: "utf8" });
  t.regex(output, /SUCCESS: \d+ rules found/);
});

testPromtool("each alert fires for its example at the expected time, and only then", async (t) => {
  const rules = await alerts();
  t.deepEqual(Object.keys(alertExamples).sort(), rules.map(({ alert }) => alert).sort());
  const dir = await temporaryDirectory(t);
  const file = join(dir, "alerts-test.yml");
  const tests = rules.flatMap((rule) => unitTestsOf(rule, alertExamples[rule.alert]!));
  await writeFile(file, JSON.stringify({ rule_files: [resolve(alertsFile)], evaluation_interval: "30s", tests }));
  const { status, stdout, stderr } = spawnSync("promtool", ["test", "rules", file], { encoding: "utf8" });
  t.is(status, 0, stdout + stderr);
});

testPromtool("promtool accepts the metrics", async (t) => {
  const node = await startMember(t, { "metrics-enabled": true, "metrics-port": "0" });
  const { text } = await ask(await metricsPortOf(node), "/metrics");
  const { status, stderr } = spawnSync("promtool", ["check", "metrics"], { input: text, encoding: "utf8" });
  // Exit code 3 means advice, which may concern metrics of the library.
  t.true(status === 0 || status === 3, stderr);
  t.deepEqual(
    stderr.split("\n").filter((line) => line.startsWith("gatehouse_")),
    [],
  );
});

testPrometheus(
  "Prometheus reports failing, not down, while the database is unreachable, and down without the node",
  async (t) => {
    const server = postgres as PostgresServer;
    const dir = await authorityDirectory(t, testKey(1));
    const node = await startNodeProcess(t, dir, [
      ...["--genesis", join(dir, "genesis.json"), "--database", await server.createDatabase()],
      ...["--metrics-enabled", "--metrics-port", "0"],
    ]);
    const prometheus = await startPrometheus(t, await metricsPortOf(node));
    await until(async () => (await prometheus.query("up")) === "1");
    t.is(await prometheus.query("gatehouse_accepting"), "1");
    t.deepEqual(await prometheus.firing(), []);

    await server.stop();
    await until(async () => (await prometheus.firing()).includes("GatehouseFailing"));
    t.deepEqual(await prometheus.firing(), ["GatehouseFailing"]);

    node.child.kill("SIGKILL");
    await until(async () => (await prometheus.firing()).includes("GatehouseDown"));
    await until(async () => !(await prometheus.firing()).includes("GatehouseFailing"));
    t.deepEqual(await prometheus.firing(), ["GatehouseDown"]);
  },
);
