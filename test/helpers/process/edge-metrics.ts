/** What a node has at its front, as its metrics tell it. */
import { ask, askJson } from "../wire/plain-client.js";
import { parseMetrics } from "./prometheus.js";

/** Flags of a node whose metrics are read. */
export const metricsFlags = { "metrics-enabled": true, "metrics-port": "0" };

/** At one moment. */
export interface EdgeCounts {
  readonly inFlight: number;
  readonly openStreams: number;
  readonly openConnections: number;
  readonly heldBytes: number;
}

/** Gives what reads the counts: by a port of their own, so that reading them takes no place at the front. */
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
