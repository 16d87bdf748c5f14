/**
 * Transactions that are being admitted to the mempool, by sender. Those of a sender are stored in nonce order, so a
 * killed process leaves no gap. A transaction is neither selected for a block nor relayed before the earlier ones of
 * its sender are in the mempool.
 */
import type { PendingEntry } from "../blocks/store.js";

type OfSender = Pick<PendingEntry, "sender" | "nonce">;

/** Transaction that is being admitted. */
export interface Arrival {
  /** Resolves once each earlier transaction of the sender was passed to the database or left admission. */
  untilEarlier(): Promise<void>;
  /** Marks the transaction as passed to the database, which stores transactions in that order. */
  handOver(): void;
  /** Ends the admission: the transaction is in the mempool, or was rejected. */
  end(): void;
}

/** Tracker of the transactions that are being admitted. */
export interface SenderArrivals {
  /** Adds a transaction whose admission starts. */
  start(transaction: OfSender): Arrival;
  /** Returns the lowest nonce being admitted for each sender; pending transactions with higher nonces must wait. */
  earliest(): Map<string, bigint>;
}

interface Admission {
  readonly nonce: bigint;
  /** Resolves once the transaction is passed to the database or its admission ends. */
  readonly handedOver: Promise<void>;
  isHandedOver: boolean;
}

/** Creates an empty tracker. */
export function createSenderArrivals(): SenderArrivals {
  const bySender = new Map<string, Set<Admission>>();
  return {
    start({ sender, nonce }) {
      let resolve = (): void => undefined;
      const handedOver = new Promise<void>((done) => (resolve = done));
      const own: Admission = { nonce, handedOver, isHandedOver: false };
      const ofSender = bySender.get(sender) ?? new Set();
      bySender.set(sender, ofSender.add(own));
      const findEarlier = (): Admission | undefined =>
        [...ofSender].find((other) => other.nonce < nonce && !other.isHandedOver);

      function handOver(): void {
        own.isHandedOver = true;
        resolve();
      }

      return {
        async untilEarlier() {
          for (let other = findEarlier(); other !== undefined; other = findEarlier()) {
            await other.handedOver;
          }
        },
        handOver,
        end() {
          handOver();
          ofSender.delete(own);
          if (ofSender.size === 0) {
            bySender.delete(sender);
          }
        },
      };
    },

    earliest() {
      const earliest = new Map<string, bigint>();
      for (const [sender, ofSender] of bySender) {
        const nonces = [...ofSender].map(({ nonce }) => nonce);
        earliest.set(
          sender,
          nonces.reduce((lowest, nonce) => (nonce < lowest ? nonce : lowest)),
        );
      }
      return earliest;
    },
  };
}
