/** Attestations of a node: the verifier, the operator's own notary, and the service. */
import { SubsystemStatus } from "../../../gen/gatehouse/health/v1/health_pb.js";
import { watchNotary, type WatchedNotary } from "../../attestation/notary.js";
import { noTrustedNotaries, createAttestationService } from "../../attestation/service.js";
import { startVerifier, type AttestationVerifier } from "../../attestation/verifier.js";
import type { NodeCore } from "../lifecycle/core.js";

export type NodeAttestation = ReturnType<typeof createNodeAttestation>;

/** Creates the service. Attestations are verified only after `start`. */
export function createNodeAttestation({
  config,
  subsystems,
  log,
  warn,
  onShutdown,
}: Pick<NodeCore, "config" | "log" | "onShutdown" | "subsystems" | "warn">) {
  let verifier: AttestationVerifier | undefined;
  let notary: WatchedNotary | undefined;
  return {
    service: createAttestationService({
      verifier: () => verifier,
      whyDisabled: () => subsystems.get("tlsnotary").extra?.reason ?? "The node is still booting.",
      notaryKeys: config.notaryKeys,
      notary: () => notary,
      publicUrls: { notaryUrl: config.notaryPublicUrl, proxyUrl: config.notaryProxyUrl },
      policy: { maxAgeS: config.attestationMaxAgeS, servers: config.attestationServers },
      nowMs: Date.now,
    }),

    /** Starts the verifier. Rejects if the start fails; the verifier is restarted all the same. */
    async start(): Promise<void> {
      if (config.notaryKeys.length === 0) {
        warn("tlsnotary", noTrustedNotaries);
      }
      const started = startVerifier({
        notaryKeys: config.notaryKeys,
        onProblem: (error) => log.error({ subsystem: "tlsnotary", err: error }, "The verifier could not be started"),
        onState: (state) => {
          if (state.status === "failed") {
            const error = { message: `The verifier failed: ${state.why}.`, source: "tlsnotary" };
            subsystems.set("tlsnotary", { status: SubsystemStatus.FAILED, error });
          } else if (state.status === "running") {
            subsystems.set("tlsnotary", { status: SubsystemStatus.READY });
          }
        },
      });
      verifier = started;
      onShutdown("the verifier", () => started.stop());
      if (config.notaryUrl !== undefined) {
        const watched = watchNotary(config.notaryUrl, ({ isReachable }) =>
          log[isReachable ? "info" : "warn"](
            { subsystem: "tlsnotary" },
            `The notary ${isReachable ? "responds" : "does not respond"}`,
          ),
        );
        notary = watched;
        onShutdown("the notary monitor", () => watched.stop());
      }
      await started.started;
      if (started.state.status === "failed") {
        throw new Error(started.state.why);
      }
    },
  };
}
