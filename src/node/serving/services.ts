/** List of the services of a node: every service descriptor with its implementation. All protocols use this list. */
import { AttestationService } from "../../../gen/gatehouse/attestation/v1/attestation_pb.js";
import { ChainService, ConsensusService } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import { ControlService } from "../../../gen/gatehouse/control/v1/control_pb.js";
import { EventService } from "../../../gen/gatehouse/event/v1/event_pb.js";
import { HealthService, SubsystemStatus } from "../../../gen/gatehouse/health/v1/health_pb.js";
import { InfoService } from "../../../gen/gatehouse/info/v1/info_pb.js";
import { Health } from "../../../gen/health/v1/health_pb.js";
import { PeerService } from "../../../gen/gatehouse/peer/v1/peer_pb.js";
import { SearchService } from "../../../gen/gatehouse/search/v1/search_pb.js";
import { StateService } from "../../../gen/gatehouse/state/v1/state_pb.js";
import { SnapshotService } from "../../../gen/gatehouse/peer/v1/snapshot_pb.js";
import { StorageService } from "../../../gen/gatehouse/storage/v1/storage_pb.js";
import { ZkService } from "../../../gen/gatehouse/zk/v1/zk_pb.js";
import type { NodeKey } from "../../base/crypto/node-key.js";
import { codename, version } from "../../base/version.js";
import type { ChainStore } from "../../chain/blocks/store.js";
import type { MempoolView } from "../../chain/blocks/store-types.js";
import type { Genesis } from "../../chain/blocks/genesis.js";
import type { EdgeStats } from "../../edge/edge.js";
import { createGrpcHealthService } from "../../health/grpc-health.js";
import { createEarlyInfo, createInfoService } from "../../info/service.js";
import { createStorageService } from "../../storage/service.js";
import { createSearchService } from "../../search/service.js";
import { createZkService } from "../../zk/service.js";
import type { NodeAttestation } from "./attestation.js";
import type { NodeCore } from "../lifecycle/core.js";
import type { NodeData } from "../chain/data-caches.js";
import type { NodeHealth } from "./health.js";
import type { NodeNetwork } from "../network/network.js";
import { createProgramHistory } from "./program-history.js";
import { createFinders, type SearchDeps } from "./search.js";
import { attestationReplies } from "../../attestation/service.js";
import { createHealthService, healthReplies } from "../../health/service.js";
import { reflectionServices } from "../../rpc/describe/reflection.js";
import { type BodyChecks, type Implementation, serve, type ServedService } from "../../rpc/service.js";

export interface Implementations {
  readonly health: Implementation<typeof HealthService>;
  readonly grpcHealth: Implementation<typeof Health>;
  readonly info: Implementation<typeof InfoService>;
  readonly chain: Implementation<typeof ChainService>;
  readonly chainBodyChecks: BodyChecks<typeof ChainService>;
  readonly storage: Implementation<typeof StorageService>;
  readonly zk: Implementation<typeof ZkService>;
  readonly state: Implementation<typeof StateService>;
  readonly search: Implementation<typeof SearchService>;
  readonly event: Implementation<typeof EventService>;
  /** Attestation service; undefined unless TLSNOTARY_ENABLED is true. Its routes then do not exist. */
  readonly attestation: Implementation<typeof AttestationService> | undefined;
}

/** Implementations that need a booted node. */
export type LaterImplementations = Omit<Implementations, "health" | "grpcHealth" | "attestation">;

/** Combines implementations with their descriptors. */
export function listServices(implementations: Implementations): ServedService[] {
  const { health, grpcHealth, info, chain, chainBodyChecks, storage, zk, state, search, event, attestation } =
    implementations;
  const services = [
    serve(HealthService, health, { plainReplies: healthReplies }),
    serve(InfoService, info),
    serve(ChainService, chain, { bodyChecks: chainBodyChecks }),
    serve(StorageService, storage),
    serve(ZkService, zk),
    serve(StateService, state),
    serve(SearchService, search),
    serve(EventService, event),
    serve(Health, grpcHealth, { isProbe: true }),
    ...(attestation === undefined
      ? []
      : [serve(AttestationService, attestation, { plainReplies: attestationReplies })]),
  ];
  return [...services, ...reflectionServices(services.map(({ desc }) => desc))];
}

/** Lists the services for other nodes. */
export function listInternalServices({
  peer,
  chain,
  snapshot,
}: {
  readonly peer: Implementation<typeof PeerService>;
  readonly chain: Implementation<typeof ChainService>;
  readonly snapshot: Implementation<typeof SnapshotService>;
}): ServedService[] {
  return [serve(PeerService, peer), serve(ChainService, chain), serve(SnapshotService, snapshot)];
}

/** Lists the services for the other processes of a node and for its operator. */
export function listControlServices({
  control,
  consensus,
  chain,
}: {
  readonly control: Implementation<typeof ControlService>;
  readonly consensus: Implementation<typeof ConsensusService>;
  readonly chain: Implementation<typeof ChainService>;
}): ServedService[] {
  const services = [serve(ControlService, control), serve(ConsensusService, consensus), serve(ChainService, chain)];
  return [...services, ...reflectionServices(services.map(({ desc }) => desc))];
}

/** Dependencies of the service that describes a booted node. */
export interface InfoDeps {
  readonly key: NodeKey;
  readonly genesis: Genesis | undefined;
  readonly network: Pick<NodeNetwork, "book">;
  readonly early: Pick<EarlyServices, "info">;
}

/** Dependencies of the services that read stored data. */
export interface DataServicesDeps {
  readonly data: NodeData;
  readonly chain: SearchDeps["chain"];
  readonly store: ChainStore;
  /** Read access to the mempool. */
  readonly view: MempoolView;
}

/** Dependencies of the services that are available before the boot is complete. */
export interface EarlyServicesDeps {
  readonly health: NodeHealth;
  readonly edgeStats: () => EdgeStats | Promise<EdgeStats>;
  readonly attestation: NodeAttestation;
}

/** Services that are available before the boot is complete. */
export type EarlyServices = ReturnType<typeof createEarlyServices>;

/** Creates the services that are available while the node starts. */
export function createEarlyServices(
  core: Pick<NodeCore, "addresses" | "config" | "logLines" | "subsystems">,
  { health, edgeStats, attestation }: EarlyServicesDeps,
) {
  const { takeSnapshot, feed, readiness, isMainLoopStalled } = health;
  const { config, subsystems, addresses, logLines } = core;
  return {
    health: createHealthService({ takeSnapshot, feed, isMainLoopStalled, readiness }),
    grpcHealth: createGrpcHealthService({
      takeSnapshot,
      feed,
      isReady: (snapshot) => Object.values(readiness(snapshot)).every((check) => check() === undefined),
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

/** Creates the service that describes a booted node. */
export function createBootedInfo(
  core: Pick<NodeCore, "addresses">,
  { key, genesis, network, early }: InfoDeps,
): Implementation<typeof InfoService> {
  return createInfoService({
    version,
    versionName: codename,
    publicKey: key.publicKey,
    early: early.info,
    connectionString: () => core.addresses.connectionString,
    peers: () => network.book.list(),
    genesis: () => genesis?.text,
  });
}

/** Creates the services that read stored data, in any process that serves the public port. */
export function createDataServices({
  data: { programs, tree, nullifiers },
  chain,
  store,
  view,
}: DataServicesDeps): Pick<LaterImplementations, "storage" | "zk" | "search"> {
  return {
    storage: createStorageService(programs, createProgramHistory(store)),
    zk: createZkService(tree, nullifiers),
    search: createSearchService(createFinders({ programs, tree, nullifiers, chain, store: { ...store, ...view } })),
  };
}
