/**
 * Intake of the mempool: stores each transaction before acknowledging it, and only once under concurrent submissions.
 */
import { RpcError } from "../../rpc/errors.js";
import type { Admission, Origin } from "./mempool-admission.js";
import type { MempoolIndex } from "./mempool-index.js";
import { unlessIncluded } from "./sender-order.js";
import type { Arriving, SenderArrivals } from "./sender-arrivals.js";
import type { MempoolStore, MempoolView, PendingEntry } from "../blocks/store.js";
import { encodeTransaction, type ReadTransaction } from "../transactions/transaction.js";

export interface IntakeDeps {
  readonly index: Pick<MempoolIndex, "get" | "add" | "giveRoom" | "loosen" | "hasLater">;
  readonly arrivals: Pick<SenderArrivals, "begin">;
  readonly admission: Pick<Admission, "check" | "take">;
  readonly store: Pick<MempoolStore, "insertPending">;
  readonly fate: MempoolView["fate"];
  /** Receive time of the latest stored transaction; 0 if there is none. */
  readonly newestMs: number;
  readonly nowMs: () => number;
  readonly monotonicMs: () => number;
  /** Removes a transaction that entered a block while it was being stored. */
  readonly onIncluded: (hash: string) => Promise<void>;
}

/** Source of a submitted transaction, and its position among those of its sender. */
export interface Handed {
  /** Undefined for the node's own transactions. */
  readonly origin?: Origin | undefined;
  /** Same as `afterNonce` of a pending entry. */
  readonly afterNonce?: bigint | undefined;
}

/** Checks of a transaction against the chain. */
export interface Fit {
  /** Checks that the chain accepts the transaction; returns the last nonce of its sender in a block. */
  check(): Promise<bigint | undefined>;
  /** Waits until the block that is being built or applied is complete. */
  untilBlock(): Promise<void>;
}

export interface Intake {
  /** Same as `Mempool.admit`. */
  admit(transaction: ReadTransaction, from: Handed, fit: Fit): Promise<void>;
  /** Reports that a block includes this transaction, which may be in the process of being stored. */
  include(hash: string): void;
}

/** Transaction that is being checked and stored. */
interface Arrival {
  readonly settled: Promise<void>;
  /** True once a block includes the transaction. */
  isIncluded: boolean;
}

export function createIntake(deps: IntakeDeps): Intake {
  const { index, arrivals, admission, store, fate, nowMs, monotonicMs, onIncluded } = deps;
  const byHash = new Map<string, Arrival>();
  let lastReceivedMs = deps.newestMs;

  function entryFor({ hash, body, signed }: ReadTransaction, { origin, afterNonce }: Handed): PendingEntry {
    const { sender, nonce, timestampMs } = body;
    const sizeBytes = encodeTransaction(signed).length;
    const [receivedMs, expiresMs] = [nowMs(), Number(body.expiresMs)];
    return { hash, sender, nonce, timestampMs, sizeBytes, origin: origin?.address, receivedMs, expiresMs, afterNonce };
  }

  async function take(
    transaction: ReadTransaction,
    from: Handed,
    fit: Fit,
    arriving: Arriving,
    isIncluded: () => boolean,
  ): Promise<void> {
    const { hash, signed, body } = transaction;
    const { origin, afterNonce } = from;
    if (index.hasLater(body)) {
      // A block in production may include the later transaction; then the nonce of this one is too low.
      await fit.untilBlock();
    }
    const known = await fate(hash);
    if (known?.status === "rejected") {
      throw new RpcError("INVALID_REQUEST", `The transaction was rejected: ${known.reason}`);
    }
    if (known !== undefined) {
      return;
    }
    const asked = entryFor(transaction, from);
    admission.check(transaction, asked, origin);
    const lastNonce = await fit.check();
    await arriving.turn();
    if (isIncluded()) {
      return;
    }
    // Receive times strictly increase, so that loading by time restores the order of arrival.
    lastReceivedMs = Math.max(nowMs(), lastReceivedMs + 1);
    const entry = { ...asked, receivedMs: lastReceivedMs, afterNonce: unlessIncluded(afterNonce, lastNonce) };
    admission.take(transaction, entry, origin);
    try {
      const stored = store.insertPending(entry, encodeTransaction(signed));
      arriving.handOver();
      await stored;
    } catch (error) {
      index.giveRoom(entry);
      throw error;
    }
    index.add(entry, monotonicMs());
    if (isIncluded()) {
      await onIncluded(hash);
    }
  }

  return {
    async admit(transaction, from, fit) {
      const { hash, body } = transaction;
      // Wait for a concurrent submission of the same transaction to finish, then try again.
      for (let other = byHash.get(hash); other !== undefined; other = byHash.get(hash)) {
        await other.settled.catch(() => undefined);
      }
      if (index.get(hash) !== undefined) {
        index.loosen(hash, from.afterNonce);
        return;
      }
      const arriving = arrivals.begin(body);
      const settled = Promise.resolve()
        .then(() => take(transaction, from, fit, arriving, () => arrival.isIncluded))
        .finally(() => {
          byHash.delete(hash);
          arriving.end();
        });
      const arrival: Arrival = { settled, isIncluded: false };
      byHash.set(hash, arrival);
      await settled;
    },

    include(hash) {
      const arrival = byHash.get(hash);
      if (arrival !== undefined) {
        arrival.isIncluded = true;
      }
    },
  };
}
