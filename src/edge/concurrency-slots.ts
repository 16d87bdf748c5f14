/** Concurrency slots of requests and streams in flight, limited in total and per address. */
import type { Connection } from "../rpc/gate.js";
import type { AddressUsage } from "./address-usage.js";
import type { ByteBudget } from "./byte-budget.js";
import type { HeldConnection } from "./connection-limit.js";
import type { Overload } from "./overload.js";
import type { StreamLimit } from "./stream-limit.js";

/** Request or stream that asks for a concurrency slot. */
export interface SlotRequest {
  readonly connection: Connection;
  readonly account: AddressUsage;
  readonly isStream: boolean;
  readonly isProbe: boolean;
}

export interface ConcurrencySlots {
  /**
   * Acquires a slot.
   *
   * @throws RpcError OVERLOADED or TOO_MANY_STREAMS if a limit is reached.
   */
  take(comer: SlotRequest): void;
  /** Releases a slot. */
  give(account: AddressUsage, isStream: boolean): void;
  /** Requests in flight, without streams. */
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
