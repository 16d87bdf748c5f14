/** The places of requests and streams that are under way: bounded in all, and for an address. */
import type { Connection } from "../rpc/gate.js";
import type { AddressUsage } from "./address-usage.js";
import type { ByteBudget } from "./byte-budget.js";
import type { HeldConnection } from "./connection-limit.js";
import type { Overload } from "./overload.js";
import type { StreamLimit } from "./stream-limit.js";

/** Who wants a place. */
export interface SlotRequest {
  readonly connection: Connection;
  readonly account: AddressUsage;
  readonly isStream: boolean;
  readonly isProbe: boolean;
}

export interface ConcurrencySlots {
  /**
   * Takes a place.
   *
   * @throws Failure OVERLOADED or TOO_MANY_STREAMS when the address may have no more.
   */
  take(comer: SlotRequest): void;
  /** Gives one back. */
  give(account: AddressUsage, isStream: boolean): void;
  /** Requests under way, streams apart. */
  readonly activeRequests: number;
}

export function createConcurrencySlots(
  overload: Overload,
  streams: StreamLimit,
  bytes: Pick<ByteBudget, "check">,
): ConcurrencySlots {
  let activeRequests = 0;
  return {
    take({ connection, account, isStream, isProbe }) {
      if (isStream || !isProbe) {
        overload.checkAddress(account.requests + account.elsewhere.requests);
        bytes.check(account, connection as HeldConnection);
      }
      if (isStream) {
        streams.open(account);
      } else {
        activeRequests++;
        account.requests++;
      }
    },
    give(account, isStream) {
      if (isStream) {
        streams.close(account);
      } else {
        activeRequests--;
        account.requests--;
      }
    },
    get activeRequests() {
      return activeRequests;
    },
  };
}
