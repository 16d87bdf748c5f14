/** Health services: the snapshot, and the probes and gRPC health derived from it. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type HealthService,
  HealthStatus,
  type ProbeReportSchema,
  ProbeStatus,
  type SubsystemSchema,
  SubsystemStatus,
} from "../../gen/gatehouse/health/v1/health_pb.js";
import { type Health, HealthCheckResponse_ServingStatus as Serving } from "../../gen/health/v1/health_pb.js";
import { RpcError } from "../rpc/errors.js";
import { invalidValue } from "../rpc/parameters.js";
import type { Implementation, PlainReplies } from "../rpc/service.js";
import type { HealthFeed } from "./feed.js";
import type { HealthSnapshot, TakeSnapshot } from "./snapshot.js";
import { isSubsystemName, subsystemNames } from "./subsystems.js";

/**
 * Checks behind `/livez` and `/readyz`, by name, so that an orchestrator can list or exclude them. A check returns
 * undefined if it passes, otherwise the reason of the failure.
 */
type Checks = Readonly<Record<string, () => string | undefined>>;

/**
 * Runs all checks except the excluded ones. The report lists the failing checks, or every check if `verbose` is set.
 *
 * @throws RpcError INVALID_REQUEST if an excluded name is not a check.
 */
function runChecks(
  checks: Checks,
  request: { readonly verbose: boolean; readonly exclude: readonly string[] },
): MessageInitShape<typeof ProbeReportSchema> {
  const names = Object.keys(checks);
  const unknown = request.exclude.find((name) => !names.includes(name));
  if (unknown !== undefined) {
    throw invalidValue("exclude", `one of ${names.join(", ")}`, unknown);
  }
  const results = names
    .filter((name) => !request.exclude.includes(name))
    .map((name) => {
      const message = checks[name]!();
      return { name, status: message === undefined ? ProbeStatus.OK : ProbeStatus.FAILING, message };
    });
  const failing = results.filter((check) => check.status === ProbeStatus.FAILING);
  return {
    status: failing.length === 0 ? ProbeStatus.OK : ProbeStatus.FAILING,
    checks: request.verbose ? results : failing,
  };
}

/** Facts of the readiness that are not part of the snapshot. */
export interface ReadinessFacts {
  /** Returns true if the main loop exited or missed its heartbeat. */
  readonly isMainLoopStalled: () => boolean;
  /** Returns true if the node is about to shut down, or shuts down. */
  readonly isStopAnnounced: () => boolean;
  /**
   * Returns the reason for which the node does not accept transactions, or lacks more than the latest few blocks;
   * undefined if there is none.
   */
  readonly whyNotFollowing: () => string | undefined;
  /** True if the node has no peers because it is a standby. */
  readonly isStandby: boolean;
}

/** Creates the readiness checks of a snapshot, which decide if clients should send traffic to the node. */
export function createReadiness({ isMainLoopStalled, isStopAnnounced, whyNotFollowing, isStandby }: ReadinessFacts) {
  const dormantReason = isStandby
    ? "The node is a standby, which has no peers."
    : "The node is dormant: it has no peers.";
  return (snapshot: HealthSnapshot): Checks => ({
    stopping: () => (isStopAnnounced() ? "The node is shutting down." : undefined),
    boot: () => (snapshot.boot?.complete === true ? undefined : "The node is booting."),
    // A node that forms its network alone has no peers, but accepts transactions and is ready.
    dormant: () => (snapshot.dormant === true && snapshot.accepting !== true ? dormantReason : undefined),
    database: () => (snapshot.mempoolSize === undefined ? "The database does not respond." : undefined),
    chain: () => whyNotReady(snapshot.subsystems?.chain),
    main_loop: () => (isMainLoopStalled() ? "The main loop is dead." : undefined),
    accepting: () => whyNotFollowing(),
  });
}

function whyNotReady(chain: MessageInitShape<typeof SubsystemSchema> | undefined): string | undefined {
  return chain?.status === SubsystemStatus.READY
    ? undefined
    : (chain?.lastError?.message ?? chain?.extra?.reason ?? "The chain is not ready.");
}

/** Returns true if all checks pass. */
export function isPassed(checks: Checks): boolean {
  return Object.values(checks).every((check) => check() === undefined);
}

export interface HealthServiceDeps {
  readonly takeSnapshot: TakeSnapshot;
  readonly feed: HealthFeed;
  /** Returns true if the main loop exited or missed its heartbeat. */
  readonly isMainLoopStalled: () => boolean;
  readonly readiness: ReturnType<typeof createReadiness>;
}

export function createHealthService(deps: HealthServiceDeps): Implementation<typeof HealthService> {
  const { takeSnapshot, feed, isMainLoopStalled, readiness } = deps;

  // Liveness must not query the database: if it failed with the database, orchestrators would restart all nodes at
  // once.
  const liveness: Checks = {
    main_loop: () => (isMainLoopStalled() ? "The main loop is dead." : undefined),
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
    headers: snapshot?.status === HealthStatus.DORMANT ? ["X-Node-Dormant", "true"] : [],
  }),
  getLiveness: ({ report }) => ({ status: report?.status === ProbeStatus.OK ? 200 : 503 }),
  getReadiness: ({ report }) => ({ status: report?.status === ProbeStatus.OK ? 200 : 503 }),
};

/** Names of `grpc.health.v1` besides the full names of services. */
const names = ["", "readiness", ...subsystemNames] as const;

/**
 * Creates the standard gRPC health service (`grpc.health.v1`), for load balancers and clients. Service names are each
 * subsystem, `readiness`, and "" for the complete node. Clients that check before they call use the full name of the
 * service that they call, which has the status of `readiness`.
 */
export function createGrpcHealthService({
  takeSnapshot,
  feed,
  readiness,
  isService,
}: Pick<HealthServiceDeps, "takeSnapshot" | "feed" | "readiness"> & {
  /** Returns true for the full name of a service of the public port, such as `gatehouse.chain.v1.ChainService`. */
  readonly isService: (name: string) => boolean;
}): Implementation<typeof Health> {
  const isKnown = (name: string): boolean => (names as readonly string[]).includes(name) || isService(name);

  function servingStatus(name: string, snapshot: HealthSnapshot): Serving {
    const isServing = isSubsystemName(name)
      ? snapshot.subsystems?.[name]?.status === SubsystemStatus.READY
      : name === ""
        ? snapshot.status !== HealthStatus.FAILING
        : isPassed(readiness(snapshot));
    return isServing ? Serving.SERVING : Serving.NOT_SERVING;
  }

  return {
    async check({ service }) {
      if (!isKnown(service)) {
        throw new RpcError(
          "NOT_FOUND",
          `There is no service "${service.slice(0, 80)}"; use the full name of a service, or one of ${names.slice(1).join(", ")}.`,
        );
      }
      return { status: servingStatus(service, await takeSnapshot()) };
    },

    async list() {
      const snapshot = await takeSnapshot();
      return { statuses: Object.fromEntries(names.map((name) => [name, { status: servingStatus(name, snapshot) }])) };
    },

    async *watch({ service }, { signal }) {
      let reported: Serving | undefined;
      for await (const snapshot of feed.watch(signal)) {
        const status = isKnown(service) ? servingStatus(service, snapshot) : Serving.SERVICE_UNKNOWN;
        if (status !== reported) {
          reported = status;
          yield { status };
        }
      }
    },
  };
}
