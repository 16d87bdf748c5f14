/** Counts of connections and requests of a node, from its metrics. */
import { ask, askJson } from "../wire/plain-client.js";
import { parseMetrics } from "./prometheus.js";

/** Flags that enable metrics. */
export const metricsFlags = { "metrics-enabled": true, "metrics-port": "0" };

/** Current counts. */
export interface EdgeCounts {
  readonly inFlight: number;
  readonly openStreams: number;
  readonly openConnections: number;
  readonly heldBytes: number;
}

/** Returns a function that reads the counts over the metrics port, which does not change them. */
export async function readEdgeCounts(node: { readonly port: number }): Promise<() => Promise<EdgeCounts>> {
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
