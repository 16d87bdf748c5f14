/** Writer lease of a node, from its acquisition to its release. */
import type { NodeKey } from "../../base/crypto/node-key.js";
import { StartError } from "../../base/errors/start-error.js";
import { createFence, type Fence } from "../../chain/writer/fence-store.js";
import { FencedError } from "../../chain/blocks/fenced-error.js";
import { describeHolder, forgetHolder, takeLease } from "../../chain/writer/writer-lease.js";
import { createWriterLeaseStore, type HeldLease, leaseMs } from "../../chain/writer/writer-lease-store.js";
import { migrate } from "../../db/migrations/migrate.js";
import type { Database } from "../../db/queries/database.js";
import type { SharedSubsystem } from "../../health/shared-subsystem.js";
import { untilDatabaseAnswers } from "../lifecycle/database-wait.js";
import type { NodeCore } from "../lifecycle/core.js";

/** Interval in milliseconds at which a lease is renewed. */
const renewEveryMs = leaseMs / 3;

/** Writer lease of a running node. */
export interface NodeLease {
  readonly fence: Fence;
  /** Returns true if this node may write, as far as it knows. */
  readonly isHeld: () => boolean;
  /**
   * Sets the function that renews the lease. The function also confirms that the database is in the state that the node
   * expects.
   */
  renewBy(confirm: () => Promise<void>): void;
}

export interface NodeLeaseDeps {
  readonly database: Database;
  readonly key: NodeKey;
  readonly chainHealth: SharedSubsystem;
  /** Writer lease that was acquired for this node in advance; undefined if there is none. */
  readonly taken: HeldLease | undefined;
}

/**
 * Acquires the writer lease, and migrates the database.
 *
 * @throws StartError if another node holds the lease.
 */
export async function openLease(
  core: Pick<NodeCore, "config" | "lifecycle" | "log" | "onShutdown" | "subsystems">,
  deps: NodeLeaseDeps,
): Promise<NodeLease> {
  const { log, onShutdown, lifecycle } = core;
  const { database, key } = deps;
  const store = createWriterLeaseStore(database);
  const held =
    deps.taken ??
    (await untilDatabaseAnswers(core, () =>
      takeLease({
        store,
        identity: key.publicKey,
        isAlone: database.files !== undefined,
        onWaiting: (lease) =>
          log.info(
            { subsystem: "chain" },
            `${describeHolder(lease)} had the database and is silent; its lease runs out in ${Math.max(0, Math.ceil(lease.leftMs / 1_000))} s`,
          ),
        signal: lifecycle.signal,
      }),
    ));
  onShutdown("the lease of the database", async () => {
    forgetHolder(held);
    await store.release(held);
  });
  const lease = keepLease(core, deps, held, async () => {
    log.error({ subsystem: "chain" }, `${describeHolder(await store.read())} has the lease of the database now`);
  });
  const hold = (): Promise<void> => database.transaction((db) => lease.fence.blocks(db, () => Promise.resolve()));
  try {
    await untilDatabaseAnswers(core, hold);
  } catch (error) {
    throw error instanceof FencedError ? new StartError(error.message, { cause: error }) : error;
  }
  lease.renewBy(hold);
  await untilDatabaseAnswers(core, () => migrate(database));
  return lease;
}

/** Renews a lease periodically, and reports when the renewal fails. */
function keepLease(
  { log, onShutdown }: Pick<NodeCore, "log" | "onShutdown">,
  { database, chainHealth }: Pick<NodeLeaseDeps, "database" | "chainHealth">,
  held: HeldLease,
  tellHolder: () => Promise<void>,
): NodeLease {
  let heldMs = performance.now();
  let trouble: string | undefined;
  let confirm: () => Promise<void> = () => Promise.resolve();
  let underWay: Promise<void> | undefined;

  function tell(message: string | undefined): void {
    if (message === trouble) {
      return;
    }
    trouble = message;
    chainHealth.tell("lease", message);
    if (message === undefined) {
      log.info({ subsystem: "chain" }, "The database can be written to again");
    }
  }

  function look(): void {
    underWay ??= confirm()
      // The write monitor reports database errors, and the fence reports the loss of the lease.
      .catch(() => undefined)
      .finally(() => (underWay = undefined));
    const silentMs = performance.now() - heldMs;
    if (silentMs > leaseMs && trouble === undefined && !fence.isHolding()) {
      tell(`The lease of the database could not be renewed for ${Math.round(silentMs / 1_000)} s.`);
    }
  }

  const fence = createFence({
    held,
    files: database.files,
    onOutcome(fenced) {
      if (fenced === undefined) {
        heldMs = performance.now();
      } else if (fenced.reason === "lease" && fenced.message !== trouble) {
        tellHolder().catch(() => undefined);
      }
      tell(fenced?.message);
    },
  });
  const timer = setInterval(look, renewEveryMs);
  onShutdown("the renewal of the lease", async () => {
    clearInterval(timer);
    await underWay;
  });
  return {
    fence,
    isHeld: () => trouble === undefined,
    renewBy(given) {
      confirm = given;
    },
  };
}
