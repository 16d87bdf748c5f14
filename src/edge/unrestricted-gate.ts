/** Gates of ports without client addresses to limit: they count connections and unanswered requests, and admit all. */
import type { Arrival, Gate, Permit } from "../rpc/gate.js";
import { UsageTracker } from "./address-usage.js";
import { createConnectionLimit, defaultBacklog } from "./connection-limit.js";

/** Limit on the connections of a port that a few programs of the operator use. */
const defaultTotal = 1_000;

/**
 * Creates the gate of a port for trusted callers. It has no limits on requests, statistics or log.
 *
 * @param check throws an RpcError to reject a request, or returns a promise to wait for, which may reject with one.
 */
export function createUnrestrictedGate(
  check: (arrival: Arrival) => Promise<void> | undefined = () => undefined,
  maxConnections = Infinity,
): Gate {
  const ignore = (): void => undefined;
  const total = Math.min(defaultTotal, maxConnections);
  const connections = createConnectionLimit({
    limits: { total, perAddress: total, backlog: defaultBacklog },
    usageTracker: new UsageTracker(),
    isTrustedProxy: () => false,
    isExempt: () => true,
    nowMs: () => performance.now(),
    onBan: ignore,
  });
  return {
    connect: (remoteAddress, close) => connections.connect(remoteAddress, close),
    record: ignore,
    admit(arrival, _protocol, method): Permit {
      return {
        ready: check(arrival),
        callerOf: () => ({ address: arrival.connection.remoteAddress, identity: arrival.connection.provenIdentity }),
        headers: [],
        method,
        recordOutcome: ignore,
        occupySlot: ignore,
        reserveRequestBytes: ignore,
        reserveResponseBytes: ignore,
        releaseResponseBytes: ignore,
        release: ignore,
      };
    },
  };
}
