/** Light node: a local port that serves proved responses to programs without support for proofs. */
import { createProofSession } from "../../client/src/proof/session.js";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import type { Logger } from "../base/logging/log.js";
import { errorMessage } from "../base/errors/error-message.js";
import { createUnrestrictedGate } from "../edge/unrestricted-gate.js";
import { compileEndpoints, createTranscoder } from "../rpc/http/transcoder.js";
import { createPort } from "../rpc/port/port.js";
import { chainHandlers, createNotFoundHandler, createPreflightHandler } from "../rpc/server/handler-chain.js";
import { createRequestIds } from "../rpc/exchange/request-ids.js";
import { hashPair } from "../zk/poseidon.js";
import { createLightServices } from "./light-services.js";
import { openTrustStore } from "./trust-store.js";
import { createUpstreams } from "./upstreams.js";

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
  /** Time limit for a read from one node in milliseconds. Default: 30,000. */
  readonly timeoutMs?: number;
}

/** Running light node. */
export interface LightNode {
  readonly port: number;
  readonly url: string;
  /** Returns the number of the latest proved block; undefined until a node has proved one. */
  readonly block: () => bigint | undefined;
  /** Stops accepting requests, and waits at most 5 s for those in flight. */
  stop(): Promise<void>;
}

const host = "127.0.0.1";
const stopWithinMs = 5_000;

/**
 * Starts a light node, and tries to have the latest block proved.
 *
 * @throws System error if the port cannot be bound; InputError or StartError for an unusable directory.
 */
export async function startLight(options: LightOptions): Promise<LightNode> {
  const { urls, genesisHash, dir, maxAgeS, log, timeoutMs } = options;
  const trustStore = await openTrustStore(dir, genesisHash);
  const onSeen = trustStore.storeSeen.bind(trustStore);
  const session = createProofSession({ genesisHash, maxAgeS, hashPair, seen: trustStore.seen, onSeen });
  const upstreams = createUpstreams({ urls, session, log, timeoutMs });
  const services = createLightServices({
    upstreams,
    trustStore,
    onFork({ message, evidence }) {
      trustStore.storeEvidence(evidence!);
      log.error({ subsystem: "light" }, `${message} All requests fail until ${trustStore.evidence()} is removed.`);
    },
  });
  const serverDeps = {
    services,
    gate: createUnrestrictedGate(),
    onInternalError: (error: unknown) => log.error({ subsystem: "light", error: errorMessage(error) }, "A read failed"),
  };
  const transcoder = createTranscoder(compileEndpoints(serverDeps));
  const handle = chainHandlers(
    [createPreflightHandler(serverDeps), transcoder.handle],
    createNotFoundHandler((path) => transcoder.methodsOf(path), serverDeps),
    serverDeps,
  );
  const listener = createPort({ handle, gate: serverDeps.gate, nextRequestId: createRequestIds() });
  const port = await listener.listen({ host, port: options.port });
  // The log states why no node returned a proof. The light node starts regardless, since a node may do so later.
  await upstreams.read(ChainService.method.getHead, {}).catch(() => undefined);
  return {
    port,
    url: `http://${host}:${port}`,
    block: () => session.seen?.number,
    stop: () => listener.drain(stopWithinMs),
  };
}
