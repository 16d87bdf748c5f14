/** Writer lease of a node, from its acquisition to its release. */
import type { NodeKey } from "../../base/crypto/node-key.js";
import { StartError } from "../../base/errors/start-error.js";
import { createFence, type Fence } from "../../chain/writer/fence-store.js";
import { FencedError } from "../../chain/blocks/store-types.js";
import { describeHolder, forgetHolder, acquireLease } from "../../chain/writer/writer-lease.js";
import { createWriterLeaseStore, type HeldLease, leaseMs } from "../../chain/writer/writer-lease-store.js";
import { migrate } from "../migrations/migrate.js";
import type { Database } from "../../db/queries/database.js";
import type { SharedSubsystem } from "../../health/subsystems.js";
import { untilDatabaseResponds } from "../lifecycle/database-wait.js";
import type { NodeCore } from "../lifecycle/core.js";

/** Interval in milliseconds at which a lease is renewed. */
const renewEveryMs = leaseMs / 3;

/** Writer lease of a running node. */
export type NodeLease = Awaited<ReturnType<typeof openLease>>;

interface NodeLeaseDeps {
  readonly database: Database;
  readonly key: NodeKey;
  readonly chainHealth: SharedSubsystem;
  /** Writer lease that was acquired for this node in advance; undefined if there is none. */
  readonly acquiredLease: HeldLease | undefined;
}

/**
 * Acquires the writer lease, and migrates the database.
 *
 * @throws StartError if another node holds the lease.
 */
export async function openLease(
  core: Pick<NodeCore, "config" | "lifecycle" | "log" | "onShutdown" | "subsystems">,
  deps: NodeLeaseDeps,
) {
  const { log, onShutdown, lifecycle } = core;
  const { database, key } = deps;
  const store = createWriterLeaseStore(database);
  const heldLease =
    deps.acquiredLease ??
    (await untilDatabaseResponds(core, () =>
      acquireLease({
        store,
        identity: key.publicKey,
        isAlone: database.files !== undefined,
        onWaiting: (lease) =>
          log.info(
            { subsystem: "chain" },
            `${describeHolder(lease)} had the writer lease and does not renew it; the lease expires in ${Math.max(0, Math.ceil(lease.leftMs / 1_000))} s`,
          ),
        signal: lifecycle.signal,
      }),
    ));
  onShutdown("the writer lease", async () => {
    forgetHolder(heldLease);
    await store.release(heldLease);
  });
  const lease = renewPeriodically(core, deps, heldLease, async () => {
    log.error({ subsystem: "chain" }, `${describeHolder(await store.read())} has the writer lease now`);
  });
  const renew = (): Promise<void> => database.transaction((db) => lease.fence.blocks(db, () => Promise.resolve()));
  try {
    await untilDatabaseResponds(core, renew);
  } catch (error) {
    throw error instanceof FencedError ? new StartError(error.message, { cause: error }) : error;
  }
  lease.renewBy(renew);
  await untilDatabaseResponds(core, () => migrate(database));
  return lease;
}

/** Renews a lease periodically, and reports when the renewal fails. */
function renewPeriodically(
  { log, onShutdown }: Pick<NodeCore, "log" | "onShutdown">,
  { database, chainHealth }: Pick<NodeLeaseDeps, "database" | "chainHealth">,
  heldLease: HeldLease,
  logHolder: () => Promise<void>,
) {
  let renewedMs = performance.now();
  let reported: string | undefined;
  let confirm: () => Promise<void> = () => Promise.resolve();
  let renewal: Promise<void> | undefined;

  function report(message: string | undefined): void {
    if (message === reported) {
      return;
    }
    reported = message;
    chainHealth.report("lease", message);
    if (message === undefined) {
      log.info({ subsystem: "chain" }, "The node can write to the database again");
    }
  }

  function renew(): void {
    renewal ??= confirm()
      // The write monitor reports database errors, and the fence reports the loss of the lease.
      .catch(() => undefined)
      .finally(() => (renewal = undefined));
    const sinceRenewalMs = performance.now() - renewedMs;
    if (sinceRenewalMs > leaseMs && reported === undefined && !fence.isHolding()) {
      report(`The writer lease could not be renewed for ${Math.round(sinceRenewalMs / 1_000)} s.`);
    }
  }

  const fence = createFence({
    held: heldLease,
    files: database.files,
    onOutcome(fenced) {
      if (fenced === undefined) {
        renewedMs = performance.now();
      } else if (fenced.reason === "lease" && fenced.message !== reported) {
        logHolder().catch(() => undefined);
      }
      report(fenced?.message);
    },
  });
  const timer = setInterval(renew, renewEveryMs);
  onShutdown("the lease renewal", async () => {
    clearInterval(timer);
    await renewal;
  });
  return {
    fence: fence as Fence,
    /** Returns true if this node may write, as far as it knows. */
    isHeld: () => reported === undefined,
    /**
     * Sets the function that renews the lease. The function also confirms that the database is in the state that the
     * node expects.
     */
    renewBy(renewLease: () => Promise<void>): void {
      confirm = renewLease;
    },
  };
}
