/** How a transaction gets into the mempool: once, however many hand it in at the same time, and stored before that is said. */
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
  /** When the newest that is stored came; 0 where there is none. */
  readonly newestMs: number;
  readonly nowMs: () => number;
  readonly monotonicMs: () => number;
  /** Takes out one that is in a block by now. */
  readonly onIncluded: (hash: string) => Promise<void>;
}

/** Who hands a transaction in, and what is said of it. */
export interface Handed {
  /** Undefined for this node itself. */
  readonly origin?: Origin | undefined;
  /** As of a pending entry. */
  readonly afterNonce?: bigint | undefined;
}

/** What the chain says of a transaction. */
export interface Fit {
  /** Checks whether the transaction fits to the chain, and returns the last nonce of its sender in a block. */
  check(): Promise<bigint | undefined>;
  /** Waits for the end of the block that is being made or applied. */
  untilBlock(): Promise<void>;
}

export interface Intake {
  /** As `Mempool.admit`. */
  admit(transaction: ReadTransaction, from: Handed, fit: Fit): Promise<void>;
  /** Tells that a block with a transaction has come, which may be on its way in. */
  include(hash: string): void;
}

/** A transaction that is being stored. */
interface Arrival {
  readonly settled: Promise<void>;
  /** A block with it has come meanwhile. */
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
      // A block that is being made may hold the later one: then this one does not fit any more.
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
    // No two alike, so that they are loaded in the order in which they came.
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
      // Who sends the same meanwhile waits for what becomes of it, and then has a chance of his own.
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
