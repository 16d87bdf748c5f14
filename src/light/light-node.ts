/**
 * Light node: a local port that serves proved responses to programs without support for proofs. It has the services of
 * a node, with responses that are proved before they are sent.
 */
import type { DescMethod } from "@bufbuild/protobuf";
import { GatehouseError } from "../../client/src/gatehouse-error.js";
import { ProofError } from "../../client/src/proof/proof-error.js";
import { isProvable } from "../../client/src/proof/reads.js";
import { createProofSession } from "../../client/src/proof/session.js";
import { AttestationService } from "../../gen/gatehouse/attestation/v1/attestation_pb.js";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { HealthService } from "../../gen/gatehouse/health/v1/health_pb.js";
import { InfoService } from "../../gen/gatehouse/info/v1/info_pb.js";
import { SearchService } from "../../gen/gatehouse/search/v1/search_pb.js";
import { StateService } from "../../gen/gatehouse/state/v1/state_pb.js";
import { StorageService } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { ZkService } from "../../gen/gatehouse/zk/v1/zk_pb.js";
import { verifyEd25519 } from "../base/crypto/ed25519.js";
import type { Logger } from "../base/logging/log.js";
import { errorMessage } from "../base/errors/error-message.js";
import { minBlockOf } from "../edge/min-block.js";
import { createUnrestrictedGate } from "../edge/unrestricted-gate.js";
import { errorCatalog, RpcError, type Reason } from "../rpc/errors.js";
import { createRequestIds } from "../rpc/exchange/exchange.js";
import { compileEndpoints, createTranscoder } from "../rpc/http/transcoder.js";
import { createPort } from "../rpc/port/port.js";
import { chainHandlers, createNotFoundHandler, createPreflightHandler } from "../rpc/server/handler-chain.js";
import type { ServedMethod, ServedService } from "../rpc/service.js";
import { hashPair } from "../zk/poseidon.js";
import { openTrustStore, type TrustStore } from "./trust-store.js";
import { createUpstreams, NoProof, type TlsTrust, type Upstreams } from "./upstream.js";

/** Start options of a light node. */
export interface LightOptions {
  /** URLs of the upstream nodes, in query order. */
  readonly urls: readonly string[];
  /** Hash of the pinned genesis: 0x and 64 lowercase hex digits. */
  readonly genesisHash: string;
  /** Directory of the trust store. */
  readonly dir: string;
  /** Port to bind; 0 selects a free port. */
  readonly port: number;
  readonly maxAgeS: number | undefined;
  readonly log: Logger;
  /** Trusted certificates of upstream nodes. Default: those of Node.js. */
  readonly tls?: TlsTrust;
  /** Time limit for a read from one node in milliseconds. Default: 30,000. */
  readonly timeoutMs?: number;
}

export type LightNode = Awaited<ReturnType<typeof startLight>>;

const host = "127.0.0.1";
const stopWithinMs = 5_000;

/**
 * Starts a light node, and tries to have the latest block proved.
 *
 * @throws System error if the port cannot be bound; InputError or StartError for an unusable directory.
 */
export async function startLight({ genesisHash, dir, port: bindTo, maxAgeS, log, ...reads }: LightOptions) {
  const trustStore = await openTrustStore(dir, genesisHash);
  const onSeen = trustStore.storeSeen.bind(trustStore);
  const session = createProofSession({
    ...{ genesisHash, maxAgeS, hashPair, verifyEd25519, seen: trustStore.seen, onSeen },
  });
  const upstreams = createUpstreams({ session, log, ...reads });
  const read = createRead(upstreams, trustStore, log);
  const readHead = () => read(ChainService.method.getHead, {});
  /** Number of the latest proved block. Every network has block 0. */
  const latest = (): bigint => session.seen?.number ?? 0n;

  /** Waits until a block is proved that a client has seen elsewhere: no later read returns an older state. */
  async function untilBlock(minBlock: bigint): Promise<void> {
    await readHead();
    if (latest() < minBlock) {
      const message = `The latest proved block is ${latest()}; try again in ${retryAfterS} s.`;
      throw new RpcError("STATE_NOT_READY", message, retryAfterS);
    }
  }

  const serverDeps = {
    services: createServices(read),
    gate: createUnrestrictedGate((arrival) => {
      const minBlock = minBlockOf(arrival) ?? 0n;
      return latest() < minBlock ? untilBlock(minBlock) : undefined;
    }),
    onInternalError: (error: unknown) => log.error({ subsystem: "light", error: errorMessage(error) }, "A read failed"),
  };
  const transcoder = createTranscoder(compileEndpoints(serverDeps));
  const handle = chainHandlers(
    [createPreflightHandler(serverDeps), transcoder.handle],
    createNotFoundHandler((path) => transcoder.methodsOf(path), serverDeps),
    serverDeps,
  );
  const listener = createPort({ handle, gate: serverDeps.gate, nextRequestId: createRequestIds() });
  const port = await listener.listen({ host, port: bindTo });
  // The log states why no node returned a proof. The light node starts regardless, since a node may do so later.
  await readHead().catch(() => undefined);
  return {
    port,
    url: `http://${host}:${port}`,
    /** Returns the number of the latest proved block; undefined until a node has proved one. */
    block: () => session.seen?.number,
    /** Stops accepting requests, and waits at most 5 s for those in flight. */
    stop: () => listener.drain(stopWithinMs),
  };
}

type Read = (method: DescMethod, request: object) => Promise<object>;

/** Creates the function for all proved reads, which stores evidence of a fork, and then rejects each read. */
function createRead(upstreams: Upstreams, trustStore: TrustStore, log: Logger): Read {
  /** Throws STATE_NOT_READY if there is evidence of a fork. */
  function requireNoFork(): void {
    const file = trustStore.evidence();
    if (file !== undefined) {
      throw new RpcError(
        "STATE_NOT_READY",
        `An authority has signed two blocks with the same number (a fork), so this light node rejects all requests. Its operator finds the evidence in ${file}, and must remove that file to continue.`,
      );
    }
  }

  return async (method, request) => {
    requireNoFork();
    try {
      const response = await upstreams.read(method, request as never);
      // A concurrent call may have found a fork in the meantime.
      requireNoFork();
      return response;
    } catch (error) {
      if (error instanceof ProofError && error.evidence !== undefined) {
        trustStore.storeEvidence(error.evidence);
        const message = `${error.message} All requests fail until ${trustStore.evidence()} is removed.`;
        log.error({ subsystem: "light" }, message);
        requireNoFork();
      }
      throw toRpcError(error);
    }
  };
}

/** Every service with routes on a node. Methods without proofs return NOT_IMPLEMENTED. */
const descriptors = [
  ...[StorageService, ZkService, ChainService, InfoService],
  ...[HealthService, StateService, SearchService, AttestationService],
];

/** Defaults of every rpc here. Callers are not identified, since the light node does not forward identities. */
const methodDefaults = { plainReply: undefined, beforeBody: undefined, isProbe: false, identifiesCaller: false };

function createServices(read: Read): ServedService[] {
  return descriptors.map((desc) => ({
    desc,
    methods: desc.methods.map((method): ServedMethod => {
      const invoke = isProvable(method) ? (request: object) => read(method, request) : () => rejectUnprovable(method);
      return { desc: method, invoke, ...methodDefaults };
    }),
  }));
}

function rejectUnprovable({ parent, name }: DescMethod): never {
  throw new RpcError(
    "NOT_IMPLEMENTED",
    `Responses of ${parent.name}.${name} cannot be proved, and a light node serves only proved responses. Send the request to a node.`,
  );
}

const retryAfterS = 5;

/** Header of an error that a node reported, and that nothing proves. */
const unprovedHeader = ["Gatehouse-Unproved", "true"];

/** Converts an error of a read for the client. Errors that are not about the node stay as they are. */
function toRpcError(error: unknown): unknown {
  if (error instanceof NoProof) {
    return new RpcError("STATE_NOT_READY", error.message, retryAfterS);
  }
  if (!(error instanceof GatehouseError)) {
    return error;
  }
  const { reason, message, fromNode } = error;
  const headers = fromNode ? unprovedHeader : [];
  if (error instanceof ProofError) {
    return new RpcError("NOT_IMPLEMENTED", message, undefined, headers);
  }
  const text = fromNode ? `A node responded without a proof: ${message}` : message;
  return reason in errorCatalog
    ? new RpcError(reason as Reason, text, undefined, headers)
    : new RpcError("STATE_NOT_READY", text, retryAfterS, headers);
}
