/** Attestation service. Health and info report the state of the verifier. */
import { type AttestationService, AttestationStatus } from "../../gen/gatehouse/attestation/v1/attestation_pb.js";
import { RpcError } from "../rpc/errors.js";
import type { Implementation, PlainReplies } from "../rpc/service.js";
import { decodePresentation } from "./input.js";
import type { WatchedNotary } from "./notary.js";
import { type AttestationPolicy, checkPolicy } from "./input.js";
import type { AttestationVerifier } from "./verifier.js";

/** Reason why a service without trusted notaries is unhealthy. */
export const noTrustedNotaries = "--notary-keys is empty, so every attestation is rejected.";

export interface AttestationServiceDeps {
  readonly verifier: () => Pick<AttestationVerifier, "state" | "verify"> | undefined;
  readonly whyDisabled: () => string;
  readonly policy: AttestationPolicy;
  readonly notaryKeys: readonly string[];
  readonly notary: () => WatchedNotary | undefined;
  /** Public addresses of that notary, and of the WebSocket proxy through which browsers reach servers. */
  readonly publicUrls: { readonly notaryUrl?: string | undefined; readonly proxyUrl?: string | undefined };
  readonly nowMs: () => number;
}

export function createAttestationService(deps: AttestationServiceDeps): Implementation<typeof AttestationService> {
  const { verifier, whyDisabled, policy, notaryKeys, notary, publicUrls, nowMs } = deps;

  function problem(): string | undefined {
    const state = verifier()?.state;
    switch (state?.status) {
      case undefined:
        return whyDisabled();
      case "running":
        if (notaryKeys.length === 0) {
          return noTrustedNotaries;
        }
        return notary()?.state.isReachable === false ? "The node's own notary does not respond." : undefined;
      case "failed":
        return `The verifier failed: ${state.why}.`;
      default:
        return `The verifier is ${state!.status}.`;
    }
  }

  return {
    getAttestationHealth() {
      const current = verifier();
      const error = problem();
      const errorStatus = current === undefined ? AttestationStatus.DISABLED : AttestationStatus.UNHEALTHY;
      return {
        status: error === undefined ? AttestationStatus.HEALTHY : errorStatus,
        service: "tlsnotary",
        initialized: current !== undefined && current.state.status !== "failed",
        serverRunning: current?.state.status === "running",
        error,
      };
    },
    getAttestationInfo() {
      const ownNotary = notary();
      return {
        enabled: true,
        port: ownNotary?.port,
        publicKey: ownNotary === undefined ? notaryKeys[0] : ownNotary.state.publicKey,
        running: verifier()?.state.status === "running",
        notaryAnswers: ownNotary?.state.isReachable,
        version: ownNotary?.state.version,
        notaryKeys: [...notaryKeys],
        ...publicUrls,
      };
    },
    async verifyAttestation({ attestation }) {
      const bytes = decodePresentation(attestation);
      const current = verifier();
      if (current === undefined) {
        throw new RpcError("VERIFIER_NOT_RUNNING", `No attestation can be verified. ${whyDisabled()}`);
      }
      const presentation = await current.verify(bytes);
      checkPolicy(presentation, policy, nowMs());
      const { connectionTimeS, ...rest } = presentation;
      return { success: true, connectionTimeS: BigInt(connectionTimeS), ...rest };
    },
  };
}

/** HTTP status of the plain HTTP responses: 503 if unhealthy. */
export const attestationReplies: PlainReplies<typeof AttestationService> = {
  getAttestationHealth: ({ status }) => ({ status: status === AttestationStatus.UNHEALTHY ? 503 : 200 }),
};
