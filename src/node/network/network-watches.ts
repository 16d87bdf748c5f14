/** What a node watches of its network: whether its clock is that of the others, and whether a key is used twice. */
import { startPeriodicTask } from "../../base/async/periodic-task.js";
import type { Genesis } from "../../chain/blocks/genesis.js";
import type { SharedSubsystem } from "../../health/shared-subsystem.js";
import type { PeerClient } from "../../peers/handshake/client.js";
import { createNetworkTime } from "../../peers/handshake/network-time.js";
import type { DuplicateIdentities } from "../../peers/handshake/duplicate-identities.js";
import { createKeyMonitor } from "../../peers/handshake/key-monitor.js";
import type { Self } from "../../peers/handshake/node-info.js";
import { isOperators } from "../../peers/address-book/peer.js";
import type { PeerBook } from "../../peers/address-book/peer-book.js";
import type { NodeCore } from "../lifecycle/core.js";

/** What the watches need beside the core. */
export interface WatchDeps {
  readonly book: Pick<PeerBook, "entries" | "verified">;
  readonly genesis: Genesis | undefined;
  readonly chainHealth: SharedSubsystem;
}

/** What the watch over the clock needs beside. */
export interface ClockWatchDeps extends WatchDeps {
  readonly siteOf: (endpoint: string) => string;
  /** No block that this node makes is of an earlier time. */
  readonly earliestMs: () => number;
}

/**
 * Compares clocks from now on. Gives what shows whether a block of a time, now when it is left out, would be too far ahead,
 * and says why.
 */
export function watchClock(
  { clock }: NodeCore,
  { book, genesis, chainHealth, siteOf, earliestMs }: ClockWatchDeps,
): (timeMs?: number) => string | undefined {
  const listed = new Set([...(genesis?.authorities ?? []), ...(genesis?.followers ?? [])]);
  clock.compareWith(
    createNetworkTime({
      entries: () => book.entries(),
      isNamed: (entry) => isOperators(entry) || listed.has(entry.identity ?? ""),
      siteOf,
      monotonicMs: () => performance.now(),
    }),
  );
  return (timeMs = Date.now()) => {
    const trouble = clock.whyAhead(Math.max(timeMs, earliestMs()));
    chainHealth.tell("clock", trouble);
    return trouble;
  };
}

/** How often processes that use a key twice are looked for. */
const lookEveryMs = 2_000;

/**
 * Shows from now on where else this node's key is used, and where another authority's is used twice. Gives what hears of
 * another process with this node's key, and of its endpoint.
 */
export function watchKeys(
  { log, onShutdown: onStop }: NodeCore,
  deps: WatchDeps & { readonly self: Self; readonly client: PeerClient; readonly doubles: DuplicateIdentities },
): (endpoint: string) => void {
  const { self, client, book, genesis, chainHealth, doubles } = deps;
  let shown = "";

  function show(party: string, trouble: string | undefined): void {
    if (trouble !== undefined && trouble !== shown) {
      shown = trouble;
      log.error({ subsystem: "chain" }, trouble);
    }
    chainHealth.tell(party, trouble);
  }

  const keys = createKeyMonitor({
    ...{ self, client, monotonicMs: () => performance.now() },
    onChange: ([endpoint]) =>
      show(
        "own key",
        endpoint &&
          `Another process uses this node's key ${self.key.publicKey}, at ${endpoint}: stop one of them, two that make ` +
            "blocks fork the chain.",
      ),
  });

  /** Only of authorities: what others do with their keys harms nobody. */
  function describeDoubles(): string | undefined {
    const found = (genesis?.authorities ?? []).flatMap((identity) => {
      const holder = book.verified(identity);
      const endpoint = doubles.of(holder);
      return endpoint === undefined ? [] : [{ identity, endpoint, holder: holder!.endpoint }];
    });
    const [first] = found;
    return (
      first && `Two processes use the key ${first.identity} of an authority, at ${first.holder} and ${first.endpoint}.`
    );
  }

  async function look(): Promise<void> {
    show("keys", describeDoubles());
    await keys.look();
  }

  const looks = startPeriodicTask(look, lookEveryMs, (error) =>
    log.warn({ subsystem: "omni", err: error }, "A look at keys failed"),
  );
  onStop("the watch over keys", () => looks.stop());
  return (endpoint) => keys.met(endpoint);
}
