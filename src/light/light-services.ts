/** Services of a node, with responses that are proved before they are sent. */
import type { DescMethod } from "@bufbuild/protobuf";
import { AttestationService } from "../../gen/gatehouse/attestation/v1/attestation_pb.js";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { HealthService } from "../../gen/gatehouse/health/v1/health_pb.js";
import { InfoService } from "../../gen/gatehouse/info/v1/info_pb.js";
import { SearchService } from "../../gen/gatehouse/search/v1/search_pb.js";
import { StateService } from "../../gen/gatehouse/state/v1/state_pb.js";
import { StorageService } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { ZkService } from "../../gen/gatehouse/zk/v1/zk_pb.js";
import { GatehouseError } from "../../client/src/gatehouse-error.js";
import { ProofError } from "../../client/src/proof/proof-error.js";
import { isProvable } from "../../client/src/proof/reads.js";
import { provedReasons } from "../../client/src/proof/session.js";
import { errorCatalog, RpcError, type Reason } from "../rpc/errors.js";
import type { ServedMethod, ServedService } from "../rpc/service.js";
import type { TrustStore } from "./trust-store.js";
import { isFromNode } from "./upstream.js";
import { NoProof, type Upstreams } from "./upstreams.js";

/** Every service with routes on a node. Methods without proofs return NOT_IMPLEMENTED. */
const descriptors = [
  ...[StorageService, ZkService, ChainService, InfoService],
  ...[HealthService, StateService, SearchService, AttestationService],
];

/** Dependencies of the services. */
export interface LightServicesDeps {
  readonly upstreams: Upstreams;
  readonly trustStore: TrustStore;
  /** Called with each error that carries evidence of a fork. */
  readonly onFork: (error: ProofError) => void;
}

/** Defaults of every rpc here. Callers are not identified, since the light node does not forward identities. */
const methodDefaults = { plainReply: undefined, beforeBody: undefined, isProbe: false, identifiesCaller: false };

/** Creates the services. */
export function createLightServices(deps: LightServicesDeps): ServedService[] {
  return descriptors.map((desc) => ({
    desc,
    methods: desc.methods.map((method): ServedMethod => {
      const invoke = isProvable(method) ? createProvedFunction(method, deps) : () => rejectUnprovable(method);
      return { desc: method, invoke, ...methodDefaults };
    }),
  }));
}

/** Creates the implementation of a method whose responses are proved. */
function createProvedFunction(method: DescMethod, deps: LightServicesDeps): ServedMethod["invoke"] {
  const { upstreams, trustStore, onFork } = deps;
  return async (request) => {
    requireNoFork(trustStore);
    try {
      const response = await upstreams.read(method, request as never);
      // A concurrent call may have found a fork in the meantime.
      requireNoFork(trustStore);
      return response;
    } catch (error) {
      if (error instanceof ProofError && error.evidence !== undefined) {
        onFork(error);
        requireNoFork(trustStore);
      }
      throw toRpcError(error);
    }
  };
}

/** Throws STATE_NOT_READY if there is evidence of a fork. */
function requireNoFork(trustStore: TrustStore): void {
  const file = trustStore.evidence();
  if (file !== undefined) {
    throw new RpcError(
      "STATE_NOT_READY",
      `An authority has signed two blocks with the same number (a fork), so this light node rejects all requests. Its operator finds the evidence in ${file}, and must remove that file to continue.`,
    );
  }
}

function rejectUnprovable({ parent, name }: DescMethod): never {
  throw new RpcError(
    "NOT_IMPLEMENTED",
    `Responses of ${parent.name}.${name} cannot be proved, and a light node serves only proved responses. Send the request to a node.`,
  );
}

/** Converts an error of a read for the client. Errors that are not about the node stay as they are. */
function toRpcError(error: unknown): unknown {
  if (error instanceof NoProof) {
    return new RpcError("STATE_NOT_READY", error.message, retryAfterS);
  }
  if (error instanceof ProofError) {
    return new RpcError("NOT_IMPLEMENTED", error.message);
  }
  if (!(error instanceof GatehouseError)) {
    return error;
  }
  const { reason, message } = error;
  if (isFromNode(error) && provedReasons.has(reason)) {
    return new RpcError("NOT_IMPLEMENTED", `A node responded without a proof: ${message}`);
  }
  return reason in errorCatalog
    ? new RpcError(reason as Reason, message)
    : new RpcError("STATE_NOT_READY", `A node responded: ${message}`, retryAfterS);
}

const retryAfterS = 5;
