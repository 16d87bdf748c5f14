/** How a node becomes the one that writes to a database, and how it is told that another one is. */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { isProcessGone, nameMachine } from "./machine.js";
import { StartError } from "../../base/errors/start-error.js";
import type { HeldLease, StoredLease, WriterLeaseStore } from "./writer-lease-store.js";

/** How often a lease that somebody has is looked at. */
const lookEveryMs = 1_000;

/** Holders of leases that live in this process. */
const ownHolders = new Set<string>();

export interface TakeLeaseDeps {
  readonly store: Pick<WriterLeaseStore, "read" | "take">;
  /** Public key of this node. */
  readonly identity: string;
  /** Nobody else can write: whatever the lease says, its holder is gone. */
  readonly isAlone: boolean;
  /** Hears who had the lease, and for how long it still holds, each time that it is looked at. */
  readonly onWaiting: (lease: StoredLease) => void;
  readonly signal: AbortSignal;
}

/**
 * Takes the lease; waits for one to run out whose holder may be gone.
 *
 * @throws StartError when its holder lives.
 */
export async function takeLease(deps: TakeLeaseDeps): Promise<HeldLease> {
  const { store, onWaiting, signal } = deps;
  const first = await store.read();
  for (let lease = first; ; lease = await store.read()) {
    if (lease.epoch !== first.epoch || lease.untilMs > first.untilMs) {
      throw new StartError(
        `${describeHolder(lease)} writes to this database; stop it first, or start this one with --role reader or standby.`,
      );
    }
    const held = await takeIfFree(deps, lease);
    if (held !== undefined) {
      return held;
    }
    onWaiting(lease);
    await sleep(lookEveryMs, undefined, { signal });
  }
}

/** Takes the lease if nobody has it; undefined when somebody has. */
export async function takeIfFree(
  { store, identity, isAlone }: Pick<TakeLeaseDeps, "store" | "identity" | "isAlone">,
  lease: StoredLease,
): Promise<HeldLease | undefined> {
  if (!isAlone && (await isHeld(lease))) {
    return undefined;
  }
  const machine = await nameMachine();
  const holder = randomBytes(16).toString("hex");
  ownHolders.add(holder);
  const epoch = await store.take(lease, { holder, host: hostname(), machine, pid: process.pid, identity });
  if (epoch === undefined) {
    ownHolders.delete(holder);
  }
  return epoch === undefined ? undefined : { holder, epoch };
}

/** Whether somebody has the lease, as far as can be seen from here. */
export async function isHeld(lease: StoredLease): Promise<boolean> {
  return lease.leftMs > 0 && !isHolderGone(lease, await nameMachine());
}

/** Tells that a holder in this process holds its lease no longer. */
export function forgetHolder({ holder }: HeldLease): void {
  ownHolders.delete(holder);
}

/** Whether the holder's process can be seen from here, and is not there. */
function isHolderGone({ holder }: StoredLease, machine: string): boolean {
  if (holder === undefined || holder.machine !== machine) {
    return false;
  }
  return holder.pid === process.pid ? !ownHolders.has(holder.holder) : isProcessGone(holder.pid);
}

/** Who holds a lease, to begin a sentence. */
export function describeHolder({ holder }: StoredLease): string {
  if (holder === undefined) {
    return "Another node";
  }
  const { host, pid, sinceMs } = holder;
  return `Another node, process ${pid} on ${host}, since ${new Date(sinceMs).toISOString()},`;
}
