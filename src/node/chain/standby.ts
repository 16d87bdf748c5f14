/** Standby node: serves reads, and waits until the writer is gone. */
import { isDatabaseError, publicReasonOf } from "../../base/errors/database-error-kind.js";
import { errorMessage } from "../../base/errors/error-message.js";
import { startPeriodicTask } from "../../base/async/periodic-task.js";
import { StartError } from "../../base/errors/start-error.js";
import type { NodeKey } from "../../base/crypto/node-key.js";
import { createLeaseObserver } from "../../chain/writer/lease-observer.js";
import { describeHolder, remainingMs, tryToAcquire } from "../../chain/writer/writer-lease.js";
import { createWriterLeaseStore, type HeldLease, renewLease } from "../../chain/writer/writer-lease-store.js";
import type { Database } from "../../db/queries/database.js";
import type { NodeCore } from "../lifecycle/core.js";
import type { RoleChange, Succession } from "../lifecycle/role-change.js";

/** Interval in milliseconds at which a standby polls the writer lease, and renews it until a writer replaces it. */
const pollIntervalMs = 1_000;

interface StandbyDeps extends Pick<Succession, "replacedAtMs"> {
  readonly database: Database;
  readonly key: NodeKey;
}

/**
 * Waits for the writer lease. Once acquired, the lease is renewed until the node stops, so that no other node acquires
 * it before the new writer starts. `roleChange` resolves to undefined if the node stops before that.
 *
 * @throws StartError if the node could not write to the database.
 */
export async function startStandby(
  { log, onShutdown, subsystems }: Pick<NodeCore, "log" | "onShutdown" | "subsystems">,
  { database, key, replacedAtMs }: StandbyDeps,
) {
  const store = createWriterLeaseStore(database);
  const observer = createLeaseObserver();
  await checkWritePermission(database);
  const showState = (problem?: string): void =>
    subsystems.set("chain", { extra: { reason: describeStandby(replacedAtMs, problem) } });
  showState();
  let resolveChange: (change: RoleChange | undefined) => void = () => undefined;
  const roleChange = new Promise<RoleChange | undefined>((resolve) => (resolveChange = resolve));
  let acquired: HeldLease | undefined;

  async function poll(): Promise<void> {
    if (acquired !== undefined) {
      const held = acquired;
      await database.transaction((db) => renewLease(db, held));
      return;
    }
    const lease = await store.read();
    showState();
    if ((await remainingMs(lease, observer)) === 0) {
      acquired = await tryToAcquire({ store, identity: key.publicKey }, lease);
    }
    if (acquired !== undefined) {
      log.warn({ subsystem: "chain" }, `${describeHolder(lease)} is gone; this node takes over as the writer`);
      resolveChange({ role: "writer", acquiredLease: acquired });
    }
  }

  const polls = startPeriodicTask(poll, pollIntervalMs, (error) => {
    observer.restart();
    showState(publicReasonOf(error));
    const verb = acquired === undefined ? "read" : "renewed";
    log.warn({ subsystem: "chain", err: error }, `The writer lease cannot be ${verb}`);
  });
  onShutdown("the lease monitor", async () => {
    await polls.stop();
    resolveChange(undefined);
  });
  return { roleChange };
}

/**
 * Returns the reason that `/health` shows for the state of a standby.
 *
 * @param problem reason why the database accepts no writes, so that the standby cannot take over now.
 */
function describeStandby(replacedAtMs: number | undefined, problem: string | undefined): string {
  const past =
    replacedAtMs === undefined
      ? ""
      : ` It was the writer until ${new Date(replacedAtMs).toISOString()}, when another node had taken over.`;
  const present = problem === undefined ? "" : ` The database accepts no writes now (${problem}).`;
  return `Standby: it serves reads, and takes over when the writer is gone.${present}${past}`;
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
