/** Limits open streams. They stay open for as long as their clients like, so they are counted apart from requests. */
import { RpcError } from "../rpc/errors.js";
import type { AddressUsage } from "./address-usage.js";

export interface StreamLimits {
  readonly total: number;
  /** Limit per IPv4 address or IPv6 /64 prefix. */
  readonly perAddress: number;
}

export const defaultStreams: StreamLimits = { total: 2_000, perAddress: 100 };

export interface StreamLimit {
  /**
   * Counts a stream that opens.
   *
   * @throws RpcError TOO_MANY_STREAMS
   */
  open(usage: AddressUsage): void;
  close(usage: AddressUsage): void;
  readonly openCount: number;
}

const retryAfterS = 10;

export function createStreamLimit({ total, perAddress }: StreamLimits): StreamLimit {
  let openCount = 0;
  return {
    open(usage) {
      const isAddressFull = usage.streams + usage.elsewhere.streams >= perAddress;
      if (isAddressFull || openCount >= total) {
        const message = isAddressFull
          ? `Your address has ${perAddress} streams open, which is the limit; close one first.`
          : `The limit of ${total} open streams is reached; try again in ${retryAfterS} s.`;
        throw new RpcError("TOO_MANY_STREAMS", message, retryAfterS);
      }
      openCount++;
      usage.streams++;
    },
    close(usage) {
      openCount--;
      usage.streams--;
    },
    get openCount() {
      return openCount;
    },
  };
}
