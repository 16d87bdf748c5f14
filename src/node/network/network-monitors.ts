/** Monitors of the network that detect a wrong clock of this node, and keys that two processes use. */
import { startPeriodicTask } from "../../base/async/periodic-task.js";
import type { Genesis } from "../../chain/blocks/genesis.js";
import type { SharedSubsystem } from "../../health/shared-subsystem.js";
import type { PeerClient } from "../../peers/handshake/client.js";
import { createNetworkTime } from "../../peers/handshake/network-time.js";
import type { DuplicateIdentities } from "../../peers/handshake/duplicate-identities.js";
import { createKeyMonitor } from "../../peers/handshake/key-monitor.js";
import type { Self } from "../../peers/handshake/node-info.js";
import { isFromOperator } from "../../peers/address-book/peer.js";
import type { PeerBook } from "../../peers/address-book/peer-book.js";
import type { NodeCore } from "../lifecycle/core.js";

/** Dependencies of the monitors besides the core. */
export interface MonitorDeps {
  readonly book: Pick<PeerBook, "entries" | "verified">;
  readonly genesis: Genesis | undefined;
  readonly chainHealth: SharedSubsystem;
}

/** Dependencies of the clock monitor besides the core. */
export interface ClockMonitorDeps extends MonitorDeps {
  readonly siteOf: (endpoint: string) => string;
  /** Returns the earliest time that a block of this node can have, in Unix milliseconds. */
  readonly earliestMs: () => number;
}

/**
 * Starts comparing clocks. Returns a function that checks if a block of a given time, by default now, would be too far
 * ahead. The function shows the reason in the health of the chain, and returns it.
 */
export function monitorClock(
  { clock }: Pick<NodeCore, "clock">,
  { book, genesis, chainHealth, siteOf, earliestMs }: ClockMonitorDeps,
): (timeMs?: number) => string | undefined {
  const listed = new Set([...(genesis?.authorities ?? []), ...(genesis?.followers ?? [])]);
  clock.compareWith(
    createNetworkTime({
      entries: () => book.entries(),
      isNamed: (entry) => isFromOperator(entry) || listed.has(entry.identity ?? ""),
      siteOf,
      monotonicMs: () => performance.now(),
    }),
  );
  return (timeMs = Date.now()) => {
    const reason = clock.whyAhead(Math.max(timeMs, earliestMs()));
    chainHealth.report("clock", reason);
    return reason;
  };
}

/** Interval in milliseconds at which duplicate uses of keys are searched for. */
const pollIntervalMs = 2_000;

/**
 * Starts to report other uses of this node's key, and duplicate uses of the key of another authority. Returns a function
 * to call with the endpoint of another process that uses this node's key.
 */
export function monitorKeys(
  { log, onShutdown }: Pick<NodeCore, "log" | "onShutdown">,
  deps: MonitorDeps & { readonly self: Self; readonly client: PeerClient; readonly duplicates: DuplicateIdentities },
): (endpoint: string) => void {
  const { self, client, book, genesis, chainHealth, duplicates } = deps;
  let shown = "";

  function report(party: string, reason: string | undefined): void {
    if (reason !== undefined && reason !== shown) {
      shown = reason;
      log.error({ subsystem: "chain" }, reason);
    }
    chainHealth.report(party, reason);
  }

  const keys = createKeyMonitor({
    ...{ self, client, monotonicMs: () => performance.now() },
    onChange: ([endpoint]) =>
      report(
        "own key",
        endpoint &&
          `Another process uses this node's key ${self.key.publicKey}, at ${endpoint}: stop one of them, because two block ` +
            "producers with one key fork the chain.",
      ),
  });

  /**
   * Describes the first duplicate use of an authority's key. Other keys are ignored, because their duplicate use harms
   * no other node.
   */
  function describeDuplicates(): string | undefined {
    const found = (genesis?.authorities ?? []).flatMap((identity) => {
      const holder = book.verified(identity);
      const endpoint = duplicates.endpointOf(holder);
      return endpoint === undefined ? [] : [{ identity, endpoint, holder: holder!.endpoint }];
    });
    const [first] = found;
    return (
      first &&
      `Two processes use the key ${first.identity} of an authority, at ${first.holder} and ${first.endpoint}; stop one of them.`
    );
  }

  async function poll(): Promise<void> {
    report("keys", describeDuplicates());
    await keys.poll();
  }

  const polls = startPeriodicTask(poll, pollIntervalMs, (error) =>
    log.warn({ subsystem: "omni", err: error }, "The check for duplicate keys failed"),
  );
  onShutdown("the key monitor", () => polls.stop());
  return (endpoint) => keys.report(endpoint);
}
