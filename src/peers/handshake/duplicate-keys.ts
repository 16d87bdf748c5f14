/** Keys that two running processes share. Two processes that produce blocks with one key fork the chain. */
import { PeerService } from "../../../gen/gatehouse/peer/v1/peer_pb.js";
import { createLruCache } from "../../base/caches/lru-cache.js";
import type { BookEntry } from "../address-book/peer.js";
import type { PeerClient } from "./client.js";
import type { Self } from "./handshake.js";

/** Time in milliseconds for which a record counts. A rejected peer returns within a minute, so this is twice that. */
const validForMs = 120_000;
const maxTracked = 64;

export type DuplicateIdentities = ReturnType<typeof createDuplicateIdentities>;

/**
 * Tracks identities that two processes share: a verified peer (the holder), and a second process that made a handshake
 * from another endpoint.
 */
export function createDuplicateIdentities(nowMs: () => number) {
  /** Second process, and the times of the first and last handshake in an uninterrupted series, by identity. */
  type Duplicate = { readonly endpoint: string; readonly firstMs: number; readonly lastMs: number };
  const duplicates = createLruCache<Duplicate>(maxTracked);
  const isRecent = ({ lastMs }: Duplicate): boolean => Math.abs(nowMs() - lastMs) <= validForMs;

  return {
    /** Records a handshake from this endpoint, by a process whose instance id differs from the holder's. */
    record(identity: string, endpoint: string): void {
      const previous = duplicates.get(identity);
      const continuesSeries = previous?.endpoint === endpoint && isRecent(previous);
      duplicates.set(identity, { endpoint, firstMs: continuesSeries ? previous.firstMs : nowMs(), lastMs: nowMs() });
    },
    /**
     * Returns the endpoint at which the second process was seen recently. Returns undefined if the holder has moved
     * there, or has not responded since the first handshake and may have moved.
     */
    endpointOf(holder: BookEntry | undefined): string | undefined {
      const duplicate = holder?.identity === undefined ? undefined : duplicates.get(holder.identity);
      if (duplicate === undefined || !isRecent(duplicate)) {
        return undefined;
      }
      const { endpoint, firstMs } = duplicate;
      const hasMoved = holder?.endpoint === endpoint || holder?.announced === endpoint;
      return !hasMoved && (holder?.lastSeenMs ?? 0) > firstMs ? endpoint : undefined;
    },
  };
}

const expiresAfterMs = 60_000;
/** Limit on the recorded endpoints. A single one suffices to detect the problem. */
const maxRecorded = 4;

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

/** Creates the monitor of other processes that use this node's key. */
export function createKeyMonitor({ self, client, monotonicMs, onChange }: KeyMonitorDeps) {
  const detectedMs = new Map<string, number>();

  /** Records another process with this node's key, at the endpoint that was dialed or that the process named. */
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
    /** Polls the recorded endpoints. */
    async poll(): Promise<void> {
      await Promise.all([...detectedMs.keys()].map(pollOne));
      const expired = [...detectedMs].filter(([, ms]) => monotonicMs() - ms > expiresAfterMs);
      expired.forEach(([endpoint]) => detectedMs.delete(endpoint));
      if (expired.length > 0) {
        onChange([...detectedMs.keys()]);
      }
    },
  };
}
