/**
 * Monitors other processes that use this node's key. Two processes that produce blocks with one key fork the chain.
 * Every detected process is polled until it is gone.
 */
import { PeerService } from "../../../gen/gatehouse/peer/v1/peer_pb.js";
import type { PeerClient } from "./client.js";
import type { Self } from "./node-info.js";

export interface KeyMonitorDeps {
  readonly self: Pick<Self, "key" | "instanceId">;
  readonly client: Pick<PeerClient, "call" | "identityOf" | "drop">;
  /** Monotonic clock, in milliseconds. */
  readonly monotonicMs: () => number;
  /**
   * Called with the endpoints of the other processes when the list changes. An endpoint is removed after 1 min without
   * detection.
   */
  readonly onChange: (endpoints: readonly string[]) => void;
}

export interface KeyMonitor {
  /** Records another process with this node's key, at the endpoint that was dialed or that the process named. */
  report(endpoint: string): void;
  /** Polls the recorded endpoints. */
  poll(): Promise<void>;
}

const expiresAfterMs = 60_000;
/** Limit on the recorded endpoints. A single one suffices to detect the problem. */
const maxRecorded = 4;

export function createKeyMonitor({ self, client, monotonicMs, onChange }: KeyMonitorDeps): KeyMonitor {
  const detectedMs = new Map<string, number>();

  function report(endpoint: string): void {
    const isNew = !detectedMs.has(endpoint);
    if (isNew && detectedMs.size >= maxRecorded) {
      return;
    }
    detectedMs.set(endpoint, monotonicMs());
    if (isNew) {
      onChange([...detectedMs.keys()]);
    }
  }

  async function pollOne(endpoint: string): Promise<void> {
    try {
      const { instanceId } = await client.call(endpoint, PeerService.method.getChallenge, {});
      if (client.identityOf(endpoint) === self.key.publicKey && !self.instanceId.equals(instanceId)) {
        report(endpoint);
      }
    } catch {
      client.drop(endpoint);
    }
  }

  return {
    report,
    async poll() {
      await Promise.all([...detectedMs.keys()].map(pollOne));
      const expired = [...detectedMs].filter(([, ms]) => monotonicMs() - ms > expiresAfterMs);
      expired.forEach(([endpoint]) => detectedMs.delete(endpoint));
      if (expired.length > 0) {
        onChange([...detectedMs.keys()]);
      }
    },
  };
}
