/** Requirements on a valid attestation. */
import { RpcError } from "../rpc/errors.js";
import type { VerifiedPresentation } from "./presentation.js";

export interface AttestationPolicy {
  /** Maximum age of the connection in seconds; 0 accepts any age. */
  readonly maxAgeS: number;
  /** Accepted server names in lowercase; an empty list accepts any server. */
  readonly servers: readonly string[];
}

/** Limit in seconds on the time of a connection ahead of the node's clock. */
const maxAheadS = 300;

/**
 * Checks a verified presentation against the policy.
 *
 * @throws RpcError INVALID_ATTESTATION with the violated rule.
 */
export function checkPolicy(
  { connectionTimeS, serverName }: VerifiedPresentation,
  { maxAgeS, servers }: AttestationPolicy,
  nowMs: number,
): void {
  const ageS = Math.floor(nowMs / 1000) - connectionTimeS;
  if (ageS < -maxAheadS) {
    throw reject("Its connection is in the future, by the clock of this node.");
  }
  if (maxAgeS > 0 && ageS > maxAgeS) {
    throw reject(`Its connection is ${ageS} s old; at most ${maxAgeS} s are accepted (--attestation-max-age).`);
  }
  if (servers.length > 0 && serverName === undefined) {
    throw reject("It carries no server name, and only named servers are accepted (--attestation-servers).");
  }
  if (servers.length > 0 && !servers.includes(serverName!.toLowerCase())) {
    throw reject(`Its server ${JSON.stringify(serverName)} is not accepted (--attestation-servers).`);
  }
}

function reject(why: string): RpcError {
  return new RpcError("INVALID_ATTESTATION", `The attestation is rejected. ${why}`);
}
