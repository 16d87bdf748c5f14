/** Standby node: serves reads, and waits until the writer is gone. */
import { isDatabaseError } from "../../base/errors/database-error-kind.js";
import { errorMessage } from "../../base/errors/error-message.js";
import { startPeriodicTask } from "../../base/async/periodic-task.js";
import { StartError } from "../../base/errors/start-error.js";
import type { NodeKey } from "../../base/crypto/node-key.js";
import { describeHolder, acquireIfFree } from "../../chain/writer/writer-lease.js";
import { createWriterLeaseStore, type HeldLease, renewLease } from "../../chain/writer/writer-lease-store.js";
import type { Database } from "../../db/queries/database.js";
import type { NodeCore } from "../lifecycle/core.js";

/** Interval in milliseconds at which a standby polls the writer lease, and renews it until a writer replaces it. */
const pollIntervalMs = 1_000;
/**
 * Waits for the writer lease. Once acquired, the lease is renewed until the node stops, so that no other node acquires
 * it before the new writer starts. `takeoverLease` resolves to undefined if the node stops before that.
 *
 * @throws StartError if the node could not write to the database.
 */
export async function startStandby(
  { log, onShutdown, subsystems }: Pick<NodeCore, "log" | "onShutdown" | "subsystems">,
  { database, key }: { readonly database: Database; readonly key: NodeKey },
) {
  const store = createWriterLeaseStore(database);
  await checkWritePermission(database);
  subsystems.set("chain", {
    extra: { reason: "Standby: it serves reads, and takes over when the writer is gone." },
  });
  let resolveLease: (acquired: HeldLease | undefined) => void = () => undefined;
  const takeoverLease = new Promise<HeldLease | undefined>((resolve) => (resolveLease = resolve));
  let acquired: HeldLease | undefined;

  async function poll(): Promise<void> {
    if (acquired !== undefined) {
      const held = acquired;
      await database.transaction((db) => renewLease(db, held));
      return;
    }
    const lease = await store.read();
    acquired = await acquireIfFree({ store, identity: key.publicKey, isAlone: false }, lease);
    if (acquired !== undefined) {
      log.warn({ subsystem: "chain" }, `${describeHolder(lease)} is gone; this node takes over as the writer`);
      resolveLease(acquired);
    }
  }

  const polls = startPeriodicTask(poll, pollIntervalMs, (error) => {
    const verb = acquired === undefined ? "read" : "renewed";
    log.warn({ subsystem: "chain", err: error }, `The writer lease cannot be ${verb}`);
  });
  onShutdown("the lease monitor", async () => {
    await polls.stop();
    resolveLease(acquired);
  });
  return { takeoverLease };
}

/**
 * Checks the permission to write, by renewing a lease that no node holds. That changes nothing.
 *
 * @throws StartError if the database does not permit writes.
 */
async function checkWritePermission(database: Database): Promise<void> {
  try {
    await database.transaction((db) => renewLease(db, { holder: "", epoch: -1 }));
  } catch (error) {
    // A temporary outage of the server does not mean a lack of rights.
    if (!isDatabaseError(error)) {
      throw new StartError(`A standby needs permission to write to the database: ${errorMessage(error)}.`, {
        cause: error,
      });
    }
  }
}
