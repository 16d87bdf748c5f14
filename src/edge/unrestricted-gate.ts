/** A gate for those who belong to the node: nobody is counted, limited or logged. */
import type { Arrival, Gate, Lease } from "../rpc/gate.js";

/**
 * Builds the gate.
 *
 * @param check throws the Failure that turns a request away.
 */
export function createOpenGate(check: (arrival: Arrival) => void = () => undefined): Gate {
  const nothing = (): void => undefined;
  return {
    connect: (remoteAddress) => ({ remoteAddress, provenIdentity: undefined, strike: nothing, end: nothing }),
    admit(arrival, _protocol, method): Lease {
      check(arrival);
      return {
        callerOf: () => ({ address: arrival.connection.remoteAddress, identity: arrival.connection.provenIdentity }),
        headers: [],
        method,
        settle: nothing,
        hold: nothing,
        charge: nothing,
        discharge: nothing,
        end: nothing,
      };
    },
  };
}
