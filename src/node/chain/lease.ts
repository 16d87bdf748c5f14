/** Writer lease of a node, from its acquisition to its release. */
import type { NodeKey } from "../../base/crypto/node-key.js";
import { StartError } from "../../base/errors/start-error.js";
import { createFence, type Fence } from "../../chain/writer/fence-store.js";
import { FencedError } from "../../chain/blocks/store-types.js";
import { describeHolder, forgetHolder, acquireLease } from "../../chain/writer/writer-lease.js";
import {
  createWriterLeaseStore,
  type HeldLease,
  type WriterLeaseStore,
  leaseMs,
  renewEveryMs,
} from "../../chain/writer/writer-lease-store.js";
import { migrate } from "../migrations/migrate.js";
import type { Database } from "../../db/queries/database.js";
import type { SharedSubsystem } from "../../health/subsystems.js";
import type { RoleChange } from "../lifecycle/role-change.js";
import { untilDatabaseResponds } from "../lifecycle/database-wait.js";
import type { NodeCore } from "../lifecycle/core.js";

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
        onWaiting: (lease, leftMs) =>
          log.info(
            { subsystem: "chain" },
            `${describeHolder(lease)} had the writer lease and does not renew it; the lease expires in ${Math.ceil(leftMs / 1_000)} s`,
          ),
        signal: lifecycle.signal,
      }),
    ));
  onShutdown("the writer lease", async () => {
    forgetHolder(heldLease);
    await store.release(heldLease);
  });
  const loss = createLossMonitor(core, deps, heldLease, store);
  const lease = renewPeriodically(core, deps, heldLease, loss.onFenced);
  const renew = (): Promise<void> => database.transaction((db) => lease.fence.blocks(db, () => Promise.resolve()));
  try {
    await untilDatabaseResponds(core, renew);
  } catch (error) {
    throw error instanceof FencedError ? new StartError(error.message, { cause: error }) : error;
  }
  lease.renewBy(renew);
  await untilDatabaseResponds(core, () => migrate(database));
  return { ...lease, roleChange: loss.roleChange };
}

/** Creates the monitor that finds out which node has the lease after a write was rejected. */
function createLossMonitor(
  { log, onShutdown }: Pick<NodeCore, "log" | "onShutdown">,
  { database, key }: Pick<NodeLeaseDeps, "database" | "key">,
  heldLease: HeldLease,
  store: Pick<WriterLeaseStore, "read">,
) {
  let resolveChange: (change: RoleChange | undefined) => void = () => undefined;
  const roleChange = new Promise<RoleChange | undefined>((resolve) => (resolveChange = resolve));
  let query: Promise<void> | undefined;
  onShutdown("the lease monitor", () => resolveChange(undefined));

  async function findHolder(): Promise<void> {
    const found = await store.read();
    log.error({ subsystem: "chain" }, `${describeHolder(found)} has the writer lease now`);
    const isSuccessor = found.epoch > heldLease.epoch && found.identity === key.publicKey;
    if (isSuccessor && database.files === undefined) {
      resolveChange({ role: "standby", replacedAtMs: Date.now() });
    }
  }

  return {
    /** Called with each write that the fence rejects because of the lease. */
    onFenced: (): void => {
      query ??= findHolder().catch(() => {
        query = undefined;
      });
    },
    /**
     * Resolves once another node with the same key has replaced this one as the writer of a server; to undefined when
     * the node stops. A database that was reset, or that another key took over, needs the operator instead.
     */
    roleChange,
  };
}

/** Renews a lease periodically, and reports when the renewal fails. */
function renewPeriodically(
  { log, onShutdown }: Pick<NodeCore, "log" | "onShutdown">,
  { database, chainHealth }: Pick<NodeLeaseDeps, "database" | "chainHealth">,
  heldLease: HeldLease,
  onFenced: () => void,
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
      } else if (fenced.reason === "lease") {
        onFenced();
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
