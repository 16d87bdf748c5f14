/**
 * Transactions of each sender that are being admitted to the mempool. They are stored in nonce order, so a killed
 * process leaves no gap. A later nonce is neither selected for a block nor relayed before the earlier ones are in the
 * mempool.
 */
import type { PendingEntry } from "../blocks/store.js";

type OfSender = Pick<PendingEntry, "sender" | "nonce">;

/** Transaction that is being admitted. */
export interface Arriving {
  /** Resolves once each earlier transaction of the sender was passed to the database or left admission. */
  untilEarlier(): Promise<void>;
  /** Marks the transaction as passed to the database, which stores transactions in that order. */
  handOver(): void;
  /** Ends the admission: the transaction is in the mempool, or was rejected. */
  end(): void;
}

/** Tracker of the transactions that are being admitted. */
export interface SenderArrivals {
  start(transaction: OfSender): Arriving;
  /** Returns the lowest nonce being admitted for each sender; higher pending nonces of that sender must wait. */
  earliest(): Map<string, bigint>;
}

interface OnItsWay {
  readonly nonce: bigint;
  /** Resolves once the transaction is passed to the database or its admission ends. */
  readonly handedOver: Promise<void>;
  isHandedOver: boolean;
}

/** Creates an empty tracker. */
export function createSenderArrivals(): SenderArrivals {
  const bySender = new Map<string, Set<OnItsWay>>();
  return {
    start({ sender, nonce }) {
      let resolve = (): void => undefined;
      const handedOver = new Promise<void>((done) => (resolve = done));
      const own: OnItsWay = { nonce, handedOver, isHandedOver: false };
      const ofSender = bySender.get(sender) ?? new Set();
      bySender.set(sender, ofSender.add(own));
      const findEarlier = (): OnItsWay | undefined =>
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
        earliest.set(
          sender,
          [...ofSender].map(({ nonce }) => nonce).reduce((lowest, nonce) => (nonce < lowest ? nonce : lowest)),
        );
      }
      return earliest;
    },
  };
}
