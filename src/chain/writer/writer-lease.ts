/** Acquisition of the writer lease at startup, and detection of another writer. */
import { randomBytes } from "node:crypto";
import { readFile, readlink } from "node:fs/promises";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { StartError } from "../../base/errors/start-error.js";
import { createLeaseObserver, type LeaseObserver } from "./lease-observer.js";
import { type HeldLease, released, type StoredLease, type WriterLeaseStore } from "./writer-lease-store.js";

/** Interval between polls of a lease that another node holds. */
const pollIntervalMs = 1_000;

/** Holder IDs of leases that this process holds. */
const ownHolders = new Set<string>();

export interface AcquireLeaseDeps {
  readonly store: Pick<WriterLeaseStore, "read" | "acquire">;
  /** Public key of this node. */
  readonly identity: string;
  /** True if no other process can write. Any other holder of the lease has then exited, even if it has not expired. */
  readonly isAlone: boolean;
  /** Called at each poll with the lease of the other holder, and the milliseconds for which that can still renew it. */
  readonly onWaiting: (lease: StoredLease, leftMs: number) => void;
  readonly signal: AbortSignal;
}

/**
 * Acquires the lease. If another node holds it, waits until that node has not renewed it for a full term, or releases it.
 *
 * @throws StartError if the holder is alive, that is, if it renews the lease.
 */
export async function acquireLease(deps: AcquireLeaseDeps): Promise<HeldLease> {
  const { store, onWaiting, signal } = deps;
  const observer = createLeaseObserver();
  const first = await store.read();
  for (let lease = first; ; lease = await store.read()) {
    if (lease.epoch !== first.epoch || (lease.untilMs !== first.untilMs && lease.untilMs !== released)) {
      throw new StartError(
        `${describeHolder(lease)} writes to this database; stop it first, or start this node with --role reader or standby.`,
      );
    }
    const leftMs = deps.isAlone ? 0 : await remainingMs(lease, observer);
    const held = leftMs === 0 ? await tryToAcquire(deps, lease) : undefined;
    if (held !== undefined) {
      return held;
    }
    onWaiting(lease, leftMs);
    await sleep(pollIntervalMs, undefined, { signal });
  }
}

/**
 * Returns the milliseconds for which the holder of a lease can still renew it: 0 if it has released the lease, has
 * exited, or has not renewed the lease for a full term.
 */
export async function remainingMs(lease: StoredLease, observer: LeaseObserver): Promise<number> {
  const leftMs = observer.observe(lease);
  return lease.untilMs === released || isHolderGone(lease, await machineId()) ? 0 : leftMs;
}

/**
 * Acquires a lease that is free. Returns undefined if another node has renewed or acquired it in the meantime, or locks
 * its row.
 */
export async function tryToAcquire(
  { store, identity }: Pick<AcquireLeaseDeps, "store" | "identity">,
  lease: StoredLease,
): Promise<HeldLease | undefined> {
  const machine = await machineId();
  const holder = randomBytes(16).toString("hex");
  ownHolders.add(holder);
  let epoch: number | undefined;
  try {
    epoch = await store.acquire(lease, { holder, host: hostname(), machine, pid: process.pid, identity });
  } finally {
    // After an error the lease may be stored nevertheless; this process then acquires it again at once.
    if (epoch === undefined) {
      ownHolders.delete(holder);
    }
  }
  return epoch === undefined ? undefined : { holder, epoch };
}

/** Returns true if a node holds the lease, as far as one look at the database shows. */
export async function isHeld(lease: StoredLease): Promise<boolean> {
  return lease.leftMs > 0 && !isHolderGone(lease, await machineId());
}

/** Records that a holder in this process no longer holds its lease. */
export function forgetHolder({ holder }: HeldLease): void {
  ownHolders.delete(holder);
}

/** Returns true if the holder's process is visible from here and no longer runs. */
function isHolderGone({ holder }: StoredLease, machine: string): boolean {
  if (holder === undefined || holder.machine !== machine) {
    return false;
  }
  return holder.pid === process.pid ? !ownHolders.has(holder.holder) : isProcessGone(holder.pid);
}

/** Describes the holder of a lease, for the start of a message. */
export function describeHolder({ holder }: StoredLease): string {
  if (holder === undefined) {
    return "Another node";
  }
  const { host, pid, sinceMs } = holder;
  return `Another node, process ${pid} on ${host}, since ${new Date(sinceMs).toISOString()},`;
}

/**
 * Returns a name of the PID namespace; each container has its own. The name changes after a reboot if the system
 * exposes a boot ID, otherwise it is the host name.
 */
async function machineId(): Promise<string> {
  try {
    const boot = await readFile("/proc/sys/kernel/random/boot_id", "utf8");
    return `${boot.trim()} ${await readlink("/proc/self/ns/pid")}`;
  } catch {
    return hostname();
  }
}

/** Returns true if this machine has no process with that ID. */
function isProcessGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
}
