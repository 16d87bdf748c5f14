/** A gate for those who belong to the node: nobody is counted, limited or logged. */
import type { Arrival, Gate, Permit } from "../rpc/gate.js";

/**
 * Builds the gate.
 *
 * @param check throws the Failure that turns a request away.
 */
export function createUnrestrictedGate(check: (arrival: Arrival) => void = () => undefined): Gate {
  const nothing = (): void => undefined;
  return {
    connect: (remoteAddress) => ({ remoteAddress, provenIdentity: undefined, penalize: nothing, end: nothing }),
    admit(arrival, _protocol, method): Permit {
      check(arrival);
      return {
        callerOf: () => ({ address: arrival.connection.remoteAddress, identity: arrival.connection.provenIdentity }),
        headers: [],
        method,
        recordOutcome: nothing,
        reserveRequestBytes: nothing,
        reserveResponseBytes: nothing,
        releaseResponseBytes: nothing,
        release: nothing,
      };
    },
  };
}
