/** The attestation service. It reports the state of the `tlsnotary` subsystem; without a verifier it verifies nothing. */
import { type AttestationService, AttestationStatus } from "../../gen/gatehouse/attestation/v1/attestation_pb.js";
import { Failure } from "../errors.js";
import type { Implementation, PlainReplies } from "../rpc/service.js";

/** What the service needs. */
export interface AttestationServiceParts {
  readonly isDormant: () => boolean;
  /** Why the verifier does not run. */
  readonly whyNotRunning: () => string;
}

/** Builds the attestation service. */
export function createAttestationService(parts: AttestationServiceParts): Implementation<typeof AttestationService> {
  return {
    getAttestationHealth: () => ({
      status: parts.isDormant() ? AttestationStatus.DISABLED : AttestationStatus.UNHEALTHY,
      service: "tlsnotary",
      initialized: false,
      serverRunning: false,
      error: parts.whyNotRunning(),
    }),
    getAttestationInfo: () => ({ enabled: true, running: false }),
    verifyAttestation(request) {
      if (request.attestation === "") {
        throw new Failure("INVALID_REQUEST", "attestation is required: the attestation, base64-encoded.");
      }
      throw new Failure("VERIFIER_NOT_RUNNING", `No attestation can be verified. ${parts.whyNotRunning()}`);
    },
  };
}

/** Status over plain HTTP: 503 when unhealthy. */
export const attestationReplies: PlainReplies<typeof AttestationService> = {
  getAttestationHealth: ({ status }) => ({ status: status === AttestationStatus.UNHEALTHY ? 503 : 200 }),
};
