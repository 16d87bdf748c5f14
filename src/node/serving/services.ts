/** Services of the public port. All protocols use this list. Some are available before the boot is complete. */
import { AttestationService } from "../../../gen/gatehouse/attestation/v1/attestation_pb.js";
import { ChainService } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import { EventService } from "../../../gen/gatehouse/event/v1/event_pb.js";
import { HealthService, SubsystemStatus } from "../../../gen/gatehouse/health/v1/health_pb.js";
import { InfoService } from "../../../gen/gatehouse/info/v1/info_pb.js";
import { Health } from "../../../gen/health/v1/health_pb.js";
import { SearchService } from "../../../gen/gatehouse/search/v1/search_pb.js";
import { StateService } from "../../../gen/gatehouse/state/v1/state_pb.js";
import { StorageService } from "../../../gen/gatehouse/storage/v1/storage_pb.js";
import { ZkService } from "../../../gen/gatehouse/zk/v1/zk_pb.js";
import { attestationReplies } from "../../attestation/service.js";
import type { NodeKey } from "../../base/crypto/node-key.js";
import { codename, version } from "../../base/version.js";
import type { Genesis } from "../../chain/blocks/genesis.js";
import type { EdgeStats } from "../../edge/edge.js";
import { createGrpcHealthService, createHealthService, healthReplies } from "../../health/service.js";
import { createEarlyInfo, createInfoService } from "../../info/service.js";
import { createDeferredService } from "../../rpc/deferred-service.js";
import { reflectionServices } from "../../rpc/describe/reflection.js";
import { type BodyChecks, type Implementation, serve, type ServedService } from "../../rpc/service.js";
import type { NodeCore } from "../lifecycle/core.js";
import type { NodeNetwork } from "../network/network.js";
import type { NodeAttestation } from "./attestation.js";
import type { NodeHealth } from "./health.js";
import { createStartingError } from "./public-facts.js";

/** Services that are available as soon as the port is bound. */
export interface EarlyImplementations {
  readonly health: Implementation<typeof HealthService>;
  readonly grpcHealth: Implementation<typeof Health>;
  readonly info: Partial<Implementation<typeof InfoService>>;
  /** Undefined unless TLSNOTARY_ENABLED is true. Its routes then do not exist. */
  readonly attestation: Implementation<typeof AttestationService> | undefined;
}

const laterServices = {
  info: InfoService,
  chain: ChainService,
  storage: StorageService,
  zk: ZkService,
  state: StateService,
  search: SearchService,
  event: EventService,
} as const;
/** Full names of the services that `grpc.health.v1` reports. */
const serviceNames: ReadonlySet<string> = new Set(
  [HealthService, ...Object.values(laterServices)].map(({ typeName }) => typeName),
);
type LaterServices = typeof laterServices;
type LaterName = keyof LaterServices;

export type LaterImplementations = { readonly [Name in LaterName]: Implementation<LaterServices[Name]> } & {
  readonly chainBodyChecks: BodyChecks<typeof ChainService>;
};

/** Lists the services. Each rpc that has no implementation yet fails with STATE_NOT_READY. */
export function listServices(
  core: Pick<NodeCore, "progress">,
  early: EarlyImplementations,
): {
  readonly services: readonly ServedService[];
  /** Lets clients call the implementations that need a booted node. */
  readonly open: (implementations: LaterImplementations) => void;
} {
  const startingError = () => createStartingError(core);
  let opened: LaterImplementations | undefined;
  const submitTransaction: BodyChecks<typeof ChainService>["submitTransaction"] = (contentLength, caller) => {
    if (opened === undefined) {
      throw startingError();
    }
    opened.chainBodyChecks.submitTransaction?.(contentLength, caller);
  };
  const deferred = Object.entries(laterServices).map(([name, desc]) => ({
    name: name as LaterName,
    desc,
    service: createDeferredService(desc, name === "info" ? early.info : {}, startingError),
  }));
  const services = [
    serve(HealthService, early.health, { plainReplies: healthReplies }),
    ...deferred.map(({ name, desc, service }) =>
      serve(desc, service.implementation, name === "chain" ? { bodyChecks: { submitTransaction } } : {}),
    ),
    serve(Health, early.grpcHealth, { isProbe: true }),
    ...(early.attestation === undefined
      ? []
      : [serve(AttestationService, early.attestation, { plainReplies: attestationReplies })]),
  ];
  return {
    services: withReflection(services),
    open(implementations) {
      opened = implementations;
      deferred.forEach(({ name, service }) => service.provide(implementations[name]));
    },
  };
}

/** Adds the services that describe these services. */
export function withReflection(services: readonly ServedService[]): ServedService[] {
  return [...services, ...reflectionServices(services.map(({ desc }) => desc))];
}

export type EarlyServices = ReturnType<typeof createEarlyServices>;

export function createEarlyServices(
  core: Pick<NodeCore, "addresses" | "config" | "logLines" | "subsystems">,
  health: NodeHealth,
  edgeStats: () => EdgeStats | Promise<EdgeStats>,
  attestation: NodeAttestation,
) {
  const { takeSnapshot, feed, readiness, isMainLoopStalled } = health;
  const { config, subsystems, addresses, logLines } = core;
  return {
    health: createHealthService({ takeSnapshot, feed, isMainLoopStalled, readiness }),
    grpcHealth: createGrpcHealthService({
      ...{ takeSnapshot, feed, readiness },
      isService: (name) => serviceNames.has(name) || (config.tlsnotaryEnabled && name === AttestationService.typeName),
    }),
    info: createEarlyInfo({
      version,
      connectionString: () => addresses.connectionString,
      ...logLines,
      mcp: () => ({
        enabled: config.mcpEnabled,
        running: subsystems.get("mcp").status === SubsystemStatus.READY,
      }),
      rateLimit: () => edgeStats(),
    }),
    attestation: config.tlsnotaryEnabled ? attestation.service : undefined,
  };
}

export function createBootedInfo(
  { addresses }: Pick<NodeCore, "addresses">,
  early: Pick<EarlyServices, "info">,
  { publicKey }: NodeKey,
  genesis: Genesis | undefined,
  network: Pick<NodeNetwork, "book">,
): Implementation<typeof InfoService> {
  return createInfoService({
    ...{ version, publicKey, versionName: codename, early: early.info },
    connectionString: () => addresses.connectionString,
    peers: () => network.book.list(),
    genesis: () => genesis?.text,
  });
}
