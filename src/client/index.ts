/**
 * A typed client of a node, exported from the package as `gatehouse/client`: one function for each rpc, over Connect or
 * gRPC, with the messages of the contract.
 */
import { type Client, ConnectError, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { createHash } from "node:crypto";
import { AttestationService } from "../../gen/gatehouse/attestation/v1/attestation_pb.js";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { Reason, ReasonSchema } from "../../gen/gatehouse/errors/v1/errors_pb.js";
import { HealthService } from "../../gen/gatehouse/health/v1/health_pb.js";
import { InfoService } from "../../gen/gatehouse/info/v1/info_pb.js";
import { StorageService } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { ZkService } from "../../gen/gatehouse/zk/v1/zk_pb.js";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";

export { AttestationService, ChainService, HealthService, InfoService, Reason, StorageService, ZkService };

/** A client for each service. */
export interface GatehouseClient {
  readonly health: Client<typeof HealthService>;
  readonly info: Client<typeof InfoService>;
  readonly chain: Client<typeof ChainService>;
  readonly storage: Client<typeof StorageService>;
  readonly zk: Client<typeof ZkService>;
  readonly attestation: Client<typeof AttestationService>;
}

/** Who calls: an Ed25519 key. */
export interface CallerKey {
  /** 0x and 64 hex digits. */
  readonly publicKey: string;
  /** The signature over these bytes: 64 bytes. */
  sign(bytes: Uint8Array): Uint8Array;
}

/** How to call. */
export interface ConnectOptions {
  /** gRPC over HTTP/2, or Connect over HTTP/1.1, which passes every proxy; connect when left out. */
  readonly protocol?: "connect" | "grpc";
  /** Calls prove this identity; anonymous when left out. */
  readonly identity?: CallerKey;
  /**
   * The network on which they prove it: the hash of its genesis. When left out, the identity is proved on every network,
   * to whoever sees its headers in the next five minutes; a node may refuse that.
   */
  readonly network?: string;
  /** How long a call may take; no limit when left out. */
  readonly timeoutMs?: number;
}

/**
 * A client of the node at this address.
 *
 * @param baseUrl scheme://host:port of the node's public port.
 */
export function connectGatehouse(baseUrl: string, options: ConnectOptions = {}): GatehouseClient {
  const { protocol = "connect", identity, network, timeoutMs } = options;
  const common = {
    baseUrl,
    interceptors: identity === undefined ? [] : [proveIdentity(identity, Date.now, network)],
    ...(timeoutMs !== undefined && { defaultTimeoutMs: timeoutMs }),
  };
  return createGatehouseClient(
    protocol === "grpc" ? createGrpcTransport(common) : createConnectTransport({ ...common, httpVersion: "1.1" }),
  );
}

/** A client over a transport of one's own, such as one for browsers. */
export function createGatehouseClient(transport: Transport): GatehouseClient {
  return {
    health: createClient(HealthService, transport),
    info: createClient(InfoService, transport),
    chain: createClient(ChainService, transport),
    storage: createClient(StorageService, transport),
    zk: createClient(ZkService, transport),
    attestation: createClient(AttestationService, transport),
  };
}

/** Why a call failed; UNSPECIFIED where the error tells of no reason, or of one that is newer than this client. */
export function reasonOf(error: unknown): Reason {
  const details = error instanceof ConnectError ? error.findDetails(ErrorInfoSchema) : [];
  const word = details.find(({ domain }) => domain === "gatehouse")?.reason;
  const isKnown = ReasonSchema.values.some(({ localName }) => localName === word);
  return isKnown ? Reason[word as keyof typeof Reason] : Reason.UNSPECIFIED;
}

/** One signature is good for five minutes; it is made anew after half of that. */
const signAgainAfterMs = 150_000;

/**
 * Adds the headers that prove an identity.
 *
 * @param network hash of the genesis of the network on which it is proved; on every network when left out.
 */
export function proveIdentity(key: CallerKey, nowMs: () => number, network?: string): Interceptor {
  const identity = `ed25519:${key.publicKey}`;
  let timestamp = 0;
  let signature = "";
  return (next) => (request) => {
    if (nowMs() - timestamp > signAgainAfterMs) {
      timestamp = nowMs();
      const claim = `${identity}:${timestamp}`;
      const signed = network === undefined ? claim : `gatehouse-identity:${network}:${claim}`;
      const digest = createHash("sha256").update(signed, "utf8").digest("hex");
      signature = `0x${Buffer.from(key.sign(Buffer.from(digest, "utf8"))).toString("hex")}`;
    }
    request.header.set("identity", identity);
    request.header.set("timestamp", String(timestamp));
    request.header.set("signature", signature);
    if (network !== undefined) {
      request.header.set("network", network);
    }
    return next(request);
  };
}
