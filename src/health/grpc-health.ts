/**
 * Standard gRPC health service (`grpc.health.v1`) for load balancers and clients. Service names are each subsystem,
 * `readiness`, and "" for the complete node. Every response derives from the health snapshot.
 */
import { type Health, HealthCheckResponse_ServingStatus as Serving } from "../../gen/health/v1/health_pb.js";
import { HealthStatus, SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { RpcError } from "../rpc/errors.js";
import type { Implementation } from "../rpc/service.js";
import type { HealthFeed } from "./feed.js";
import type { HealthSnapshot, TakeSnapshot } from "./snapshot.js";
import { isSubsystemName, subsystemNames } from "./subsystems.js";

export interface GrpcHealthDeps {
  readonly takeSnapshot: TakeSnapshot;
  readonly feed: HealthFeed;
  /** Returns true if clients should send traffic to the node. */
  readonly isReady: (snapshot: HealthSnapshot) => boolean;
}

const names = ["", "readiness", ...subsystemNames] as const;

export function createGrpcHealthService(deps: GrpcHealthDeps): Implementation<typeof Health> {
  function servingStatus(name: string, snapshot: HealthSnapshot): Serving {
    const isServing = isSubsystemName(name)
      ? snapshot.subsystems?.[name]?.status === SubsystemStatus.READY
      : name === ""
        ? snapshot.status !== HealthStatus.FAILING
        : deps.isReady(snapshot);
    return isServing ? Serving.SERVING : Serving.NOT_SERVING;
  }

  return {
    async check({ service }) {
      if (!isKnown(service)) {
        throw new RpcError(
          "NOT_FOUND",
          `There is no service "${service.slice(0, 80)}"; use one of ${names.slice(1).join(", ")}.`,
        );
      }
      return { status: servingStatus(service, await deps.takeSnapshot()) };
    },

    async list() {
      const snapshot = await deps.takeSnapshot();
      return { statuses: Object.fromEntries(names.map((name) => [name, { status: servingStatus(name, snapshot) }])) };
    },

    async *watch({ service }, { signal }) {
      let reported: Serving | undefined;
      for await (const snapshot of deps.feed.watch(signal)) {
        const status = isKnown(service) ? servingStatus(service, snapshot) : Serving.SERVICE_UNKNOWN;
        if (status !== reported) {
          reported = status;
          yield { status };
        }
      }
    },
  };
}

function isKnown(name: string): boolean {
  return (names as readonly string[]).includes(name);
}
