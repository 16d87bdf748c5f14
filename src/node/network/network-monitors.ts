/** Monitors of the network that detect a wrong clock of this node, and keys that two processes use. */
import { startPeriodicTask } from "../../base/async/periodic-task.js";
import {
  createKeyMonitor,
  type DuplicateIdentities,
  type KeyMonitorDeps,
} from "../../peers/handshake/duplicate-keys.js";
import { type BookEntry, isFromOperator } from "../../peers/address-book/peer.js";
import type { PeerBook } from "../../peers/address-book/peer-book.js";
import type { NodeCore } from "../lifecycle/core.js";
import type { NetworkParts } from "./network-book.js";

/**
 * Starts comparing clocks. Returns a function that checks if a block of a given time, by default now, would be too far
 * ahead. The function shows the reason in the health of the chain, and returns it.
 *
 * @param siteOf returns the location of an endpoint.
 * @param earliestMs returns the earliest time that a block of this node can have, in Unix milliseconds.
 */
export function monitorClock(
  { clock }: Pick<NodeCore, "clock">,
  { genesis, chainHealth }: Pick<NetworkParts, "genesis" | "chainHealth">,
  book: PeerBook,
  siteOf: (endpoint: string) => string,
  earliestMs: () => number,
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

interface NetworkTimeDeps {
  readonly entries: () => readonly BookEntry[];
  /** Returns true if the operator or the genesis names the peer. If any such clock is known, only those count. */
  readonly isNamed: (entry: BookEntry) => boolean;
  /** Returns the site of an endpoint. All peers of one site count as one clock. */
  readonly siteOf: (endpoint: string) => string;
  /** Monotonic clock, in milliseconds. */
  readonly monotonicMs: () => number;
}

/** Time in milliseconds for which a computed offset is cached. */
const cachedForMs = 500;

/**
 * Creates the function that returns the time by the verified peers' clocks, in milliseconds since the epoch. The time
 * is the median, or the later of two middle values; undefined if no clock is known. Anyone can run many peers, so each
 * site counts once.
 */
export function createNetworkTime({ entries, isNamed, siteOf, monotonicMs }: NetworkTimeDeps) {
  let cached: { readonly offsetMs: number | undefined; readonly untilMs: number } | undefined;

  function findOffset(): number | undefined {
    const verified = entries().filter(({ verifiedMs }) => verifiedMs !== undefined);
    const named = upperMedianOf(verified.filter(isNamed).map(({ clockOffsetMs }) => clockOffsetMs));
    const sites = new Map<string, (number | undefined)[]>();
    for (const { endpoint, clockOffsetMs } of verified) {
      const site = siteOf(endpoint);
      sites.set(site, [...(sites.get(site) ?? []), clockOffsetMs]);
    }
    return named ?? upperMedianOf([...sites.values()].map(upperMedianOf));
  }

  return (): number | undefined => {
    const now = monotonicMs();
    if (cached === undefined || cached.untilMs <= now) {
      cached = { offsetMs: findOffset(), untilMs: now + cachedForMs };
    }
    return cached.offsetMs === undefined ? undefined : now + cached.offsetMs;
  };
}

/** Returns the median of the known values, or the higher of two middle values; undefined if none is known. */
function upperMedianOf(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined).sort((a, b) => a - b);
  return known[Math.floor(known.length / 2)];
}

/** Interval in milliseconds at which duplicate uses of keys are searched for. */
const pollIntervalMs = 2_000;

/**
 * Starts to report other uses of this node's key, and duplicate uses of the key of another authority. Returns a function
 * to call with the endpoint of another process that uses this node's key.
 */
export function monitorKeys(
  { log, onShutdown }: Pick<NodeCore, "log" | "onShutdown">,
  { genesis, chainHealth }: Pick<NetworkParts, "genesis" | "chainHealth">,
  book: PeerBook,
  { self, client, duplicates }: Pick<KeyMonitorDeps, "self" | "client"> & { readonly duplicates: DuplicateIdentities },
): (endpoint: string) => void {
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
  function describeDuplicate(): string | undefined {
    for (const identity of genesis?.authorities ?? []) {
      const holder = book.verified(identity);
      const endpoint = duplicates.endpointOf(holder);
      if (endpoint !== undefined) {
        return `Two processes use the key ${identity} of an authority, at ${holder!.endpoint} and ${endpoint}; stop one of them.`;
      }
    }
    return undefined;
  }

  async function poll(): Promise<void> {
    report("keys", describeDuplicate());
    await keys.poll();
  }

  const polls = startPeriodicTask(poll, pollIntervalMs, (error) =>
    log.warn({ subsystem: "omni", err: error }, "The check for duplicate keys failed"),
  );
  onShutdown("the key monitor", () => polls.stop());
  return keys.report;
}
