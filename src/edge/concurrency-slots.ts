/** Concurrency slots of requests and streams in flight, limited in total and per address. */
import type { Connection } from "../rpc/gate.js";
import type { AddressUsage } from "./address-usage.js";
import type { ByteBudget } from "./byte-budget.js";
import type { TrackedConnection } from "./connection-limit.js";
import type { Overload } from "./overload.js";
import type { StreamLimit } from "./stream-limit.js";

/** Request or stream that asks for a concurrency slot. */
export interface SlotRequest {
  readonly connection: Connection;
  readonly usage: AddressUsage;
  readonly isStream: boolean;
  readonly isProbe: boolean;
}

export interface ConcurrencySlots {
  /**
   * Acquires a slot.
   *
   * @throws RpcError OVERLOADED or TOO_MANY_STREAMS if a limit is reached.
   */
  acquire(request: SlotRequest): void;
  /** Releases a slot. */
  release(usage: AddressUsage, isStream: boolean): void;
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
    acquire({ connection, usage, isStream, isProbe }) {
      if (isStream || !isProbe) {
        overload.checkAddress(usage.requests + usage.elsewhere.requests);
        bytes.check(usage, connection as TrackedConnection);
      }
      if (isStream) {
        streams.open(usage);
      } else {
        activeRequests++;
        usage.requests++;
      }
    },
    release(usage, isStream) {
      if (isStream) {
        streams.close(usage);
      } else {
        activeRequests--;
        usage.requests--;
      }
    },
    get activeRequests() {
      return activeRequests;
    },
  };
}
