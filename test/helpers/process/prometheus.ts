/** A strict parser of the Prometheus text format, and the counts of a node in it. */
import { ask, askJson } from "../wire/plain-client.js";

const sample = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? ([Nn]a[Nn]|[+-]Inf|[-+0-9.e]+)( \d+)?$/;
const label = /([a-zA-Z_]\w*)="((?:[^"\\\n]|\\["\\n])*)",?/gy;

/** Parses metrics. Throws on an invalid line. */
export function parseMetrics(text: string) {
  const values = new Map<string, number>();
  const typed = new Set<string>();
  if (!text.endsWith("\n")) {
    throw new Error("The last line has no end.");
  }
  for (const line of text.split("\n").slice(0, -1)) {
    const type = /^# TYPE (\S+) (counter|gauge|histogram|summary|untyped)$/.exec(line);
    if (type !== null) {
      if (typed.has(type[1]!)) {
        throw new Error(`${type[1]} has two types.`);
      }
      typed.add(type[1]!);
    } else if (line !== "" && !/^# HELP \S+ \S/.test(line)) {
      const [, name, labels = "", value] = sample.exec(line) ?? [];
      if (name === undefined) {
        throw new Error(`No sample: ${line}`);
      }
      values.set(
        keyOf(name, parseLabels(labels)),
        /^nan$/i.test(value!) ? NaN : Number(value!.replace("Inf", "Infinity")),
      );
    }
  }
  return {
    /** Returns the value of the sample with exactly these labels; undefined without one. */
    value: (name: string, labels: Readonly<Record<string, string>>) => values.get(keyOf(name, labels)),
    names: [...typed],
  };
}

function parseLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  label.lastIndex = 0;
  while (label.lastIndex < text.length) {
    const found = label.exec(text);
    if (found === null) {
      throw new Error(`No labels: ${text}`);
    }
    labels[found[1]!] = found[2]!.replace(/\\(["\\n])/g, (_, escaped: string) => (escaped === "n" ? "\n" : escaped));
  }
  return labels;
}

function keyOf(name: string, labels: Readonly<Record<string, string>>): string {
  return `${name} ${JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)))}`;
}

/** Flags that enable metrics. */
export const metricsFlags = { "metrics-enabled": true, "metrics-port": "0" };

/** Returns a function that reads the counts over the metrics port, which does not change them. */
export async function readEdgeCounts(node: { readonly port: number }) {
  const { ports } = await askJson<{ ports: { metrics: { actual: number } } }>(node.port, "/health");
  return async () => {
    const metrics = parseMetrics((await ask(ports.metrics.actual, "/metrics")).text);
    const gauge = (name: string): number => {
      const found = metrics.value(`gatehouse_${name}`, {});
      if (found === undefined) {
        throw new Error(`There is no metric ${name}.`);
      }
      return found;
    };
    return {
      inFlight: gauge("requests_in_flight"),
      openStreams: gauge("open_streams"),
      openConnections: gauge("open_connections"),
      heldBytes: gauge("held_bytes"),
    };
  };
}
