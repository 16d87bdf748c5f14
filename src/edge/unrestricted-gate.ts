/** Gate for trusted callers. It has no limits, statistics or log. */
import type { Arrival, Gate, Permit } from "../rpc/gate.js";

/**
 * Creates the gate.
 *
 * @param check throws an RpcError to reject a request.
 */
export function createUnrestrictedGate(check: (arrival: Arrival) => void = () => undefined): Gate {
  const ignore = (): void => undefined;
  return {
    connect: (remoteAddress) => ({ remoteAddress, provenIdentity: undefined, penalize: ignore, end: ignore }),
    admit(arrival, _protocol, method): Permit {
      check(arrival);
      return {
        callerOf: () => ({ address: arrival.connection.remoteAddress, identity: arrival.connection.provenIdentity }),
        headers: [],
        method,
        recordOutcome: ignore,
        reserveRequestBytes: ignore,
        reserveResponseBytes: ignore,
        releaseResponseBytes: ignore,
        release: ignore,
      };
    },
  };
}
