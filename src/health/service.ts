/** The health service: the snapshot, and the probes that are made of it. */
import {
  type HealthService,
  HealthStatus,
  ProbeStatus,
  SubsystemStatus,
} from "../../gen/gatehouse/health/v1/health_pb.js";
import type { Implementation, PlainReplies } from "../rpc/service.js";
import { type Checks, runChecks } from "./probes.js";
import type { HealthSnapshot, TakeSnapshot } from "./snapshot.js";

/** What the service needs. */
export interface HealthServiceParts {
  readonly takeSnapshot: TakeSnapshot;
  /** The main loop exited or missed its heartbeat. */
  readonly isMainLoopDead: () => boolean;
  /** The node was told to stop and takes no new traffic. */
  readonly isStopping: () => boolean;
}

/** Builds the health service. */
export function createHealthService(parts: HealthServiceParts): Implementation<typeof HealthService> {
  const { takeSnapshot, isMainLoopDead, isStopping } = parts;

  // Nothing here may ask the database: a liveness probe that fails with the database restarts every node at once.
  const liveness: Checks = {
    main_loop: () => (isMainLoopDead() ? "the main loop is dead" : undefined),
  };

  const readiness = (snapshot: HealthSnapshot): Checks => ({
    stopping: () => (isStopping() ? "the node is shutting down" : undefined),
    boot: () => (snapshot.boot?.complete === true ? undefined : "the node is still booting"),
    dormant: () => (snapshot.dormant === true ? "the node is dormant: it has no peers" : undefined),
    database: () => (snapshot.mempoolSize === undefined ? "the database does not answer" : undefined),
    chain: () => {
      const status = snapshot.subsystems?.chain?.status;
      return status === SubsystemStatus.READY ? undefined : "the chain is not ready";
    },
    main_loop: () => (isMainLoopDead() ? "the main loop is dead" : undefined),
    accepting: () => (snapshot.accepting === true ? undefined : "the node is not synced"),
  });

  return {
    getHealth() {
      const snapshot = takeSnapshot();
      return snapshot instanceof Promise ? snapshot.then((taken) => ({ snapshot: taken })) : { snapshot };
    },
    async listSubsystems() {
      const { dormant, subsystems } = await takeSnapshot();
      return { dormant, subsystems };
    },
    async getLiveness(request) {
      return { report: await runChecks(liveness, request) };
    },
    async getReadiness(request) {
      return { report: await runChecks(readiness(await takeSnapshot()), request) };
    },
  };
}

/** Status and headers over plain HTTP ("Health status" in the specification). */
export const healthReplies: PlainReplies<typeof HealthService> = {
  getHealth: ({ snapshot }) => ({
    status: snapshot?.status === HealthStatus.FAILING ? 503 : 200,
    ...(snapshot?.status === HealthStatus.DORMANT && { headers: { "X-Node-Dormant": "true" } }),
  }),
  getLiveness: ({ report }) => ({ status: report?.status === ProbeStatus.OK ? 200 : 503 }),
  getReadiness: ({ report }) => ({ status: report?.status === ProbeStatus.OK ? 200 : 503 }),
};
