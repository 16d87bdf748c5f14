/** Untrusted nodes: reads from one, and reads from several in order until one returns a proof. */
import type { DescMessage, DescMethod, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { ConnectionOptions } from "node:tls";
import { isTransient, toGatehouseError } from "../../client/src/errors.js";
import { type FailureReason, GatehouseError } from "../../client/src/gatehouse-error.js";
import { ProofError, type ProofFlaw } from "../../client/src/proof/proof-error.js";
import { answerProved } from "../../client/src/proof/reads.js";
import type { ProofSession } from "../../client/src/proof/session.js";
import type { AskNode } from "../../client/src/proof/source.js";
import { maxGenesisBytes, maxResponseBytes, startTimeout } from "../../client/src/response-limits.js";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { InfoService } from "../../gen/gatehouse/info/v1/info_pb.js";
import { describeCertificateError } from "../base/errors/certificate-error.js";
import type { Logger } from "../base/logging/log.js";

/** Default time limit for a read in milliseconds. */
const defaultTimeoutMs = 30_000;

/** Options of a TLS connection that say which certificates it trusts. Default: those of Node.js. */
export type TlsTrust = Pick<ConnectionOptions, "ca" | "secureContext">;

/** Settings of reads. */
interface ReadSettings {
  /** Headers that prove the identity of the caller, for data with restricted access. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Time limit for a read from one node in milliseconds. Default: 30,000. */
  readonly timeoutMs?: number | undefined;
  readonly tls?: TlsTrust | undefined;
}

/**
 * Returns the function that starts a read from a node. All calls of a read share one time limit, and reject with
 * GatehouseError.
 *
 * @param url URL of the node's public port, with the path prefix of a proxy, if any.
 */
export function createStartRead(
  url: string,
  { headers = {}, timeoutMs = defaultTimeoutMs, tls: nodeOptions = {} }: ReadSettings = {},
): () => AskNode {
  const baseUrl = url.replace(/\/+$/, "");
  const [transport, genesisTransport] = [maxResponseBytes, maxGenesisBytes].map((readMaxBytes) =>
    createConnectTransport({ baseUrl, httpVersion: "1.1", readMaxBytes, nodeOptions }),
  );
  return () => {
    const leftMs = startTimeout(timeoutMs);
    return async (method, request) => {
      const isGenesis = (method as DescMethod) === InfoService.method.getGenesis;
      try {
        const calls = isGenesis ? genesisTransport! : transport!;
        return (await calls.unary(method, undefined, leftMs(), headers, request)).message;
      } catch (thrown) {
        const rejected = describeCertificateError(url, thrown, "--ca FILE");
        throw rejected === undefined
          ? toGatehouseError(thrown)
          : new GatehouseError(rejected, "UNREACHABLE", { code: "Unavailable", fromNode: true, cause: thrown });
      }
    };
  };
}

/** Duration in milliseconds of the penalty for a lying and for a failing node. */
const penaltyMs = { lying: 600_000, failing: 5_000 };

/** Flaws of a node that lags or has a wrong clock. Any other flaw means that the response was forged. */
const lagging: ReadonlySet<ProofFlaw> = new Set<ProofFlaw>(["age", "rollback"]);

/**
 * Errors without a usable response, in addition to transient ones: the read timed out, or the responder is not a node.
 */
const noResponse: ReadonlySet<FailureReason> = new Set<FailureReason>(["DEADLINE_EXCEEDED", "UNSPECIFIED"]);

interface Upstream {
  readonly url: string;
  readonly startRead: () => AskNode;
  penalizedUntilMs: number;
  isLying: boolean;
}

/** Error of a node that concerns the request, and not the node. */
interface Rejection {
  readonly upstream: Upstream;
  readonly error: GatehouseError;
}

/** Returns true for an error that a proof or the request itself shows, so that no other node can change it. */
function isProved(error: unknown): boolean {
  return error instanceof GatehouseError && !(error instanceof ProofError) && !error.fromNode;
}

/** Error if no node currently returns a proof. */
export class NoProof extends Error {}

export type Upstreams = ReturnType<typeof createUpstreams>;

/** Reader of several nodes, with their URLs in query order. */
interface UpstreamsDeps extends Pick<ReadSettings, "timeoutMs" | "tls"> {
  readonly urls: readonly string[];
  readonly session: ProofSession;
  readonly log: Logger;
}

/** Creates the reader of several nodes. */
export function createUpstreams({ urls, session, log, ...settings }: UpstreamsDeps) {
  const upstreams = urls.map((url): Upstream => ({
    ...{ url, startRead: createStartRead(url, settings) },
    ...{ penalizedUntilMs: 0, isLying: false },
  }));

  /**
   * Returns the nodes in query order. Penalized nodes come last; lying nodes are omitted until their penalty expires.
   */
  function inOrder(): Upstream[] {
    const now = Date.now();
    const isPenalized = ({ penalizedUntilMs }: Upstream): boolean => penalizedUntilMs > now;
    const preferred = upstreams.filter((one) => !isPenalized(one));
    return [...preferred, ...upstreams.filter((one) => isPenalized(one) && !one.isLying)];
  }

  function penalize(upstream: Upstream, cause: keyof typeof penaltyMs, { message }: Error): void {
    upstream.isLying = cause === "lying";
    upstream.penalizedUntilMs = Date.now() + penaltyMs[cause];
    const fields = { subsystem: "light", node: upstream.url, seconds: penaltyMs[cause] / 1000 };
    if (upstream.isLying) {
      log.error(fields, `${upstream.url} sent a false proof and is not queried for now: ${message}`);
    } else {
      log.warn(fields, `${upstream.url} failed and is not queried for now: ${message}`);
    }
  }

  /** Penalizes nodes that rejected a request which another node has answered with a proof. They lie, or lag. */
  function penalizeRefuted(rejections: readonly Rejection[], method: DescMethod): void {
    for (const { upstream, error } of rejections) {
      // Nodes may have different rules for transactions, and different stored blocks.
      const isClaim = error.fromNode && (error.reason === "PERMISSION_DENIED" || error instanceof ProofError);
      if (isClaim && method !== (ChainService.method.submitTransaction as DescMethod)) {
        penalize(upstream, "failing", new Error(`Another node proved the opposite. ${error.message}`));
      }
    }
  }

  /**
   * Decides if another node may do better. Throws fork evidence, which no other node can change. Returns an error to report if
   * no node returns a proof. Otherwise penalizes the node and returns undefined.
   */
  function classifyError(upstream: Upstream, error: unknown): GatehouseError | undefined {
    if (error instanceof ProofError) {
      if (error.flaw === "fork") {
        throw error;
      }
      // Another node may name the block that proves the response.
      if (error.flaw === "unprovable") {
        return error;
      }
      penalize(upstream, lagging.has(error.flaw) ? "failing" : "lying", error);
      return undefined;
    }
    if (!(error instanceof GatehouseError)) {
      throw error;
    }
    if (!isTransient(error) && !noResponse.has(error.reason)) {
      return error;
    }
    penalize(upstream, "failing", error);
    return undefined;
  }

  return {
    /**
     * Returns the first proved response.
     *
     * @throws GatehouseError for a proved absence, or from the first node that rejected the request; ProofError fork with
     *   evidence; ProofError unprovable; NoProof.
     */
    async read<I extends DescMessage, O extends DescMessage>(
      method: DescMethod & { readonly input: I; readonly output: O },
      request: MessageInitShape<I>,
    ): Promise<MessageShape<O>> {
      const rejections: Rejection[] = [];
      for (const upstream of inOrder()) {
        try {
          const response = await answerProved(method, request, session.sourceOf(upstream.startRead()));
          upstream.penalizedUntilMs = 0;
          penalizeRefuted(rejections, method);
          return response;
        } catch (error) {
          if (isProved(error)) {
            penalizeRefuted(rejections, method);
            throw error;
          }
          const rejection = classifyError(upstream, error);
          if (rejection !== undefined) {
            rejections.push({ upstream, error: rejection });
          }
        }
      }
      throw (
        rejections[0]?.error ??
        new NoProof("None of this light node's upstream nodes responds with a proof; see its log for the reasons.")
      );
    },
  };
}
