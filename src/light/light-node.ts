/** A light node: a local port that answers what is proved, to programs that know nothing of proofs. */
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

/** What it is started with. */
export interface LightOptions {
  /** Nodes that are asked, in this order. */
  readonly urls: readonly string[];
  /** 0x and 64 lower-case hex digits. */
  readonly genesisHash: string;
  /** Directory of what it remembers. */
  readonly dir: string;
  /** 0 for a free one. */
  readonly port: number;
  readonly maxAgeS: number | undefined;
  readonly log: Logger;
  /** The time limit of a read from one node, in milliseconds; 30,000 when left out. */
  readonly timeoutMs?: number;
}

/** A running one. */
export interface LightNode {
  readonly port: number;
  readonly url: string;
  /** The newest block that was proved; undefined while no node has shown one. */
  readonly block: () => bigint | undefined;
  /** Finishes what is under way, for a few seconds. */
  stop(): Promise<void>;
}

const host = "127.0.0.1";
const stopWithinMs = 5_000;

/**
 * Starts it, and has one block proved, if a node does.
 *
 * @throws the system's error when the port cannot be bound; InputError, StartError for the directory.
 */
export async function startLight(options: LightOptions): Promise<LightNode> {
  const { urls, genesisHash, dir, maxAgeS, log, timeoutMs } = options;
  const memory = await openTrustStore(dir, genesisHash);
  const onSeen = memory.keepSeen.bind(memory);
  const session = createProofSession({ genesisHash, maxAgeS, hashPair, seen: memory.seen, onSeen });
  const upstreams = createUpstreams({ urls, session, log, timeoutMs });
  const services = createLightServices({
    upstreams,
    memory,
    onFork({ message, evidence }) {
      memory.keepEvidence(evidence!);
      log.error({ subsystem: "light" }, `${message} Nothing is answered until ${memory.evidence()} is removed.`);
    },
  });
  const parts = {
    services,
    gate: createUnrestrictedGate(),
    onInternalError: (error: unknown) => log.error({ subsystem: "light", error: errorMessage(error) }, "A read failed"),
  };
  const transcoder = createTranscoder(compileEndpoints(parts));
  const handle = chainHandlers(
    [createPreflightHandler(parts), transcoder.handle],
    createNotFoundHandler((path) => transcoder.methodsOf(path), parts),
    parts,
  );
  const listener = createPort({ handle, gate: parts.gate, nextRequestId: createRequestIds() });
  const port = await listener.listen({ host, port: options.port });
  // The log says what is wrong where none does; it may come to be there.
  await upstreams.answer(ChainService.method.getHead, {}).catch(() => undefined);
  return {
    port,
    url: `http://${host}:${port}`,
    block: () => session.seen?.number,
    stop: () => listener.drain(stopWithinMs),
  };
}
