/** A node that stands by: it reads, and waits until the node that writes is gone. */
import { isDatabaseError } from "../../base/errors/database-error-kind.js";
import { errorMessage } from "../../base/errors/error-message.js";
import { startPeriodicTask } from "../../base/async/periodic-task.js";
import { StartError } from "../../base/errors/start-error.js";
import type { NodeKey } from "../../base/crypto/node-key.js";
import { describeHolder, takeIfFree } from "../../chain/writer/writer-lease.js";
import { createWriterLeaseStore, type HeldLease, holdLease, leaseMs } from "../../chain/writer/writer-lease-store.js";
import type { Database } from "../../db/queries/database.js";
import type { NodeCore } from "../lifecycle/core.js";

/** How often it looks whether it is its turn. */
const lookEveryMs = 1_000;
/** How often it renews the lease until another node goes on with it. */
const renewEveryMs = leaseMs / 3;

/** What a standby waits for. */
export interface Standby {
  /** The lease, once it is this node's; undefined when the node stops without. Left out for a node that does not stand by. */
  readonly turn: Promise<HeldLease | undefined> | undefined;
}

/**
 * Waits for the lease. It is renewed until the node stops, so that nobody else has it before a node that writes goes on
 * with it.
 *
 * @throws StartError when it could not write.
 */
export async function standBy(
  { log, onShutdown: onStop, subsystems }: NodeCore,
  { database, key }: { readonly database: Database; readonly key: NodeKey },
): Promise<Standby> {
  const store = createWriterLeaseStore(database);
  await checkRights(database);
  subsystems.set("chain", {
    extra: { reason: "It stands by: it reads, and writes when the node that writes is gone." },
  });
  let end: (held: HeldLease | undefined) => void = () => undefined;
  const turn = new Promise<HeldLease | undefined>((resolve) => (end = resolve));
  let held: HeldLease | undefined;

  const looks = startPeriodicTask(
    async () => {
      if (held !== undefined) {
        return;
      }
      const lease = await store.read();
      held = await takeIfFree({ store, identity: key.publicKey, isAlone: false }, lease);
      if (held !== undefined) {
        log.warn({ subsystem: "chain" }, `${describeHolder(lease)} is gone; this one takes over and writes`);
        end(held);
      }
    },
    lookEveryMs,
    (error) => log.warn({ subsystem: "chain", err: error }, "The lease of the database cannot be looked at"),
  );
  const renewals = startPeriodicTask(
    async () => {
      if (held !== undefined) {
        await database.transaction((db) => holdLease(db, held!));
      }
    },
    renewEveryMs,
    (error) => log.warn({ subsystem: "chain", err: error }, "The lease of the database cannot be renewed"),
  );
  onStop("the watch over the lease", async () => {
    await Promise.all([looks.stop(), renewals.stop()]);
    end(held);
  });
  return { turn };
}

/** A lease that nobody has is renewed, which changes nothing. */
async function checkRights(database: Database): Promise<void> {
  try {
    await database.transaction((db) => holdLease(db, { holder: "", epoch: -1 }));
  } catch (error) {
    // A server that is away for a moment is no lack of rights.
    if (!isDatabaseError(error)) {
      throw new StartError(`A standby must be allowed to write to the database: ${errorMessage(error)}.`, {
        cause: error,
      });
    }
  }
}
