/** Health service: the snapshot, and the probes derived from it. */
import { type HealthService, HealthStatus, ProbeStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import type { Implementation, PlainReplies } from "../rpc/service.js";
import type { HealthFeed } from "./feed.js";
import { type Checks, runChecks } from "./probes.js";
import type { HealthSnapshot, TakeSnapshot } from "./snapshot.js";

export interface HealthServiceDeps {
  readonly takeSnapshot: TakeSnapshot;
  readonly feed: HealthFeed;
  /** Returns true if the main loop exited or missed its heartbeat. */
  readonly isMainLoopStalled: () => boolean;
  /** Creates the checks that decide if clients should send traffic to the node. */
  readonly readiness: (snapshot: HealthSnapshot) => Checks;
}

export function createHealthService(deps: HealthServiceDeps): Implementation<typeof HealthService> {
  const { takeSnapshot, feed, isMainLoopStalled, readiness } = deps;

  // Liveness must not query the database: if it failed with the database, orchestrators would restart all nodes at
  // once.
  const liveness: Checks = {
    main_loop: () => (isMainLoopStalled() ? "the main loop is dead" : undefined),
  };

  return {
    getHealth() {
      const snapshot = takeSnapshot();
      return snapshot instanceof Promise ? snapshot.then((latest) => ({ snapshot: latest })) : { snapshot };
    },
    async listSubsystems() {
      const { dormant, subsystems } = await takeSnapshot();
      return { dormant, subsystems };
    },
    getLiveness: (request) => ({ report: runChecks(liveness, request) }),
    async getReadiness(request) {
      return { report: runChecks(readiness(await takeSnapshot()), request) };
    },
    async *watchHealth(_request, { signal }) {
      for await (const snapshot of feed.watch(signal)) {
        yield { snapshot };
      }
    },
  };
}

/** HTTP status and headers of the plain HTTP responses ("Health status" in the specification). */
export const healthReplies: PlainReplies<typeof HealthService> = {
  getHealth: ({ snapshot }) => ({
    status: snapshot?.status === HealthStatus.FAILING ? 503 : 200,
    ...(snapshot?.status === HealthStatus.DORMANT && { headers: { "X-Node-Dormant": "true" } }),
  }),
  getLiveness: ({ report }) => ({ status: report?.status === ProbeStatus.OK ? 200 : 503 }),
  getReadiness: ({ report }) => ({ status: report?.status === ProbeStatus.OK ? 200 : 503 }),
};
