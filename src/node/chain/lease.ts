/** The lease of a node that writes, from when it is taken until it is given back. */
import type { NodeKey } from "../../base/crypto/node-key.js";
import { StartError } from "../../base/errors/start-error.js";
import { createFence, type Fence } from "../../chain/writer/fence-store.js";
import { FencedError } from "../../chain/blocks/fenced-error.js";
import { describeHolder, forgetHolder, takeLease } from "../../chain/writer/writer-lease.js";
import { createWriterLeaseStore, type HeldLease, leaseMs } from "../../chain/writer/writer-lease-store.js";
import { migrate } from "../../db/migrations/migrate.js";
import type { Database } from "../../db/queries/database.js";
import type { SharedSubsystem } from "../../health/shared-subsystem.js";
import type { NodeCore } from "../lifecycle/core.js";

/** How often a lease is renewed. */
const renewEveryMs = leaseMs / 3;

/** The lease of a node that writes. */
export interface NodeLease {
  readonly fence: Fence;
  /** Whether this node may write, as far as it knows. */
  readonly isHeld: () => boolean;
  /** From now on the lease is renewed by this, which also confirms that the database is what the node believes it is. */
  renewBy(confirm: () => Promise<void>): void;
}

export interface NodeLeaseDeps {
  readonly database: Database;
  readonly key: NodeKey;
  readonly chainHealth: SharedSubsystem;
  /** One that was taken for this node already. */
  readonly taken: HeldLease | undefined;
}

/**
 * Takes the lease, and brings the database up to date.
 *
 * @throws StartError when another node has it.
 */
export async function openLease(core: NodeCore, deps: NodeLeaseDeps): Promise<NodeLease> {
  const { log, onShutdown: onStop, lifecycle } = core;
  const { database, key } = deps;
  const store = createWriterLeaseStore(database);
  const held =
    deps.taken ??
    (await takeLease({
      store,
      identity: key.publicKey,
      isAlone: database.files !== undefined,
      onWaiting: (lease) =>
        log.info(
          { subsystem: "chain" },
          `${describeHolder(lease)} had the database and is silent; its lease runs out in ${Math.max(0, Math.ceil(lease.leftMs / 1_000))} s`,
        ),
      signal: lifecycle.signal,
    }));
  onStop("the lease of the database", async () => {
    forgetHolder(held);
    await store.release(held);
  });
  const lease = keepLease(core, deps, held, async () => {
    log.error({ subsystem: "chain" }, `${describeHolder(await store.read())} has the lease of the database now`);
  });
  const hold = (): Promise<void> => database.transaction((db) => lease.fence.blocks(db, () => Promise.resolve()));
  try {
    await hold();
  } catch (error) {
    throw error instanceof FencedError ? new StartError(error.message, { cause: error }) : error;
  }
  lease.renewBy(hold);
  await migrate(database);
  return lease;
}

/** Renews a lease, and tells when that does not succeed. */
function keepLease(
  { log, onShutdown: onStop }: NodeCore,
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
      // Trouble of the database is told by the watch over writes, that with the lease by its fence.
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
  onStop("the renewal of the lease", async () => {
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
