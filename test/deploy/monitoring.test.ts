/** The alerts and the dashboard name metrics that a node really has, and are what their tools take. */
import test from "ava";
import { execFileSync, spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import { nodeMetrics } from "../../src/metrics/table.js";
import { catalogue } from "../../src/rpc/errors.js";
import { startMember } from "../helpers/start-member.js";
import { ask, askJson } from "../helpers/plain-client.js";
import { parseMetrics } from "../helpers/prometheus.js";
import type { Teardown } from "../helpers/teardown.js";
import { testUnless, whyNot } from "../helpers/when.js";

const alertsFile = "deploy/prometheus/alerts.yml";

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string };
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

/** Names of the metrics that a node has, those of histograms with their endings. */
async function namesOf(t: Teardown): Promise<Set<string>> {
  const node = await startMember(t, { "metrics-enabled": true, "metrics-port": "0" });
  const { ports } = await askJson<{ ports: { metrics: { actual: number } } }>(node.port, "/health");
  const { names } = parseMetrics((await ask(ports.metrics.actual, "/metrics")).text);
  return new Set(names.flatMap((name) => [name, `${name}_bucket`, `${name}_count`, `${name}_sum`]));
}

async function expressions(): Promise<string[]> {
  return [
    ...(await alerts()).map(({ expr }) => expr),
    ...(await dashboard()).panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
  ];
}

const named = (expr: string): string[] => expr.match(/\b(gatehouse|nodejs|process)_\w+/g) ?? [];

test("every metric of the alerts and the dashboard is one that a node has", async (t) => {
  const names = await namesOf(t);
  const exprs = await expressions();
  t.true(exprs.length > 25);
  for (const expr of exprs) {
    const used = named(expr);
    t.true(used.length > 0 || expr.startsWith("up{"), expr);
    t.deepEqual(
      used.filter((name) => !names.has(name)),
      [],
      expr,
    );
  }
});

test("they select by labels that the metric has, and by outcomes of the contract", async (t) => {
  const outcomes = ["OK", ...Object.keys(catalogue)];
  let selected = 0;
  for (const expr of await expressions()) {
    for (const [, name, selectors] of expr.matchAll(/\b(gatehouse_\w+?)(?:_bucket|_count|_sum)?\{([^}]*)\}/g)) {
      const metric = nodeMetrics.find((row) => row.name === name);
      for (const [, label, value] of selectors!.matchAll(/(\w+)(?:=~|!~|!=|=)"([^"]*)"/g)) {
        // Prometheus itself adds the instance.
        t.true(label === "instance" || metric?.labels.some((own) => own === label), expr);
        t.true(label !== "code" || outcomes.includes(value!), expr);
        selected++;
      }
    }
  }
  t.true(selected > 20, String(selected));
});

test("alerts have a severity and a sentence; panels have a place of their own", async (t) => {
  const rules = await alerts();
  t.is(new Set(rules.map(({ alert }) => alert)).size, rules.length);
  for (const { alert, labels, annotations } of rules) {
    t.true(["critical", "warning", "info"].includes(labels.severity), alert);
    t.regex(annotations.summary, /\.$/, alert);
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

const testPrometheus = testUnless(whyNot("promtool", "--version"));

testPrometheus("Prometheus itself takes the alerts", (t) => {
  const output = execFileSync("promtool", ["check", "rules", alertsFile], { encoding: "utf8" });
  t.regex(output, /SUCCESS: \d+ rules found/);
});

testPrometheus("Prometheus itself takes the metrics", async (t) => {
  const node = await startMember(t, { "metrics-enabled": true, "metrics-port": "0" });
  const { ports } = await askJson<{ ports: { metrics: { actual: number } } }>(node.port, "/health");
  const { text } = await ask(ports.metrics.actual, "/metrics");
  const { status, stderr } = spawnSync("promtool", ["check", "metrics"], { input: text, encoding: "utf8" });
  // 3: it has advice. What it says of the library's own metrics is not ours to change.
  t.true(status === 0 || status === 3, stderr);
  t.deepEqual(
    stderr.split("\n").filter((line) => line.startsWith("gatehouse_")),
    [],
  );
});
