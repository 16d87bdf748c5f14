/**
 * Watches for other processes that use this node's key: two that make blocks with one key fork the chain. Whoever was met
 * is asked again and again whether it is still there.
 */
import { PeerService } from "../../../gen/gatehouse/peer/v1/peer_pb.js";
import type { PeerClient } from "./client.js";
import type { Self } from "./node-info.js";

export interface KeyWatchDeps {
  readonly self: Pick<Self, "key" | "instanceId">;
  readonly client: Pick<PeerClient, "call" | "identityOf" | "drop">;
  /** A clock that nobody sets. */
  readonly monotonicMs: () => number;
  /** Hears where other processes use the key; nowhere, once none was met for a minute. */
  readonly onChange: (endpoints: readonly string[]) => void;
}

export interface KeyMonitor {
  /** Another process with this node's key was met, at the endpoint that was dialed or that it named. */
  met(endpoint: string): void;
  /** Asks those that were met. */
  look(): Promise<void>;
}

const forgottenAfterMs = 60_000;
/** Most endpoints that are remembered: one is enough to know of it. */
const maxMet = 4;

export function createKeyMonitor({ self, client, monotonicMs, onChange }: KeyWatchDeps): KeyMonitor {
  const metMs = new Map<string, number>();

  function met(endpoint: string): void {
    const isNew = !metMs.has(endpoint);
    if (isNew && metMs.size >= maxMet) {
      return;
    }
    metMs.set(endpoint, monotonicMs());
    if (isNew) {
      onChange([...metMs.keys()]);
    }
  }

  async function ask(endpoint: string): Promise<void> {
    try {
      const { instanceId } = await client.call(endpoint, PeerService.method.getChallenge, {});
      if (client.identityOf(endpoint) === self.key.publicKey && !self.instanceId.equals(instanceId)) {
        met(endpoint);
      }
    } catch {
      client.drop(endpoint);
    }
  }

  return {
    met,
    async look() {
      await Promise.all([...metMs.keys()].map(ask));
      const gone = [...metMs].filter(([, ms]) => monotonicMs() - ms > forgottenAfterMs);
      gone.forEach(([endpoint]) => metMs.delete(endpoint));
      if (gone.length > 0) {
        onChange([...metMs.keys()]);
      }
    },
  };
}
