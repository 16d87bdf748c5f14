/**
 * Transactions of senders that are on their way into the mempool. One with a later nonce is stored after those with
 * earlier ones, so that a process that is killed leaves no gap, and is neither taken nor relayed before they are in.
 */
import type { PendingEntry } from "../blocks/store.js";

type OfSender = Pick<PendingEntry, "sender" | "nonce">;

/** A transaction that is on its way. */
export interface Arriving {
  /** Resolves once every earlier one of the sender was handed to the database, or is not on its way any more. */
  turn(): Promise<void>;
  /** It was handed to the database, which stores what it is given in that order. */
  handOver(): void;
  /** It is in the mempool, or was refused. */
  end(): void;
}

/** All that are on their way. */
export interface SenderArrivals {
  begin(transaction: OfSender): Arriving;
  /** The earliest nonce on its way, by sender: nothing from there on has its turn yet. */
  earliest(): Map<string, bigint>;
}

interface OnItsWay {
  readonly nonce: bigint;
  /** Resolves when it was handed over, or ended. */
  readonly handedOver: Promise<void>;
  isHandedOver: boolean;
}

/** Builds it; nothing is on its way yet. */
export function createSenderArrivals(): SenderArrivals {
  const bySender = new Map<string, Set<OnItsWay>>();
  return {
    begin({ sender, nonce }) {
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
        async turn() {
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
          [...ofSender].map(({ nonce }) => nonce).reduce((least, nonce) => (nonce < least ? nonce : least)),
        );
      }
      return earliest;
    },
  };
}
