/** Untrusted nodes that are queried in order until one returns a proof. */
import type { DescMessage, DescMethod, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { isTransient } from "../../client/src/errors.js";
import { type FailureReason, GatehouseError } from "../../client/src/gatehouse-error.js";
import { ProofError, type ProofFlaw } from "../../client/src/proof/proof-error.js";
import { answerProved } from "../../client/src/proof/reads.js";
import type { ProofSession } from "../../client/src/proof/session.js";
import type { Logger } from "../base/logging/log.js";
import { createStartRead, isFromNode, type StartRead } from "./upstream.js";

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
  readonly startRead: StartRead;
  penalizedUntilMs: number;
  isLying: boolean;
}

/** Dependencies of the upstream nodes. */
export interface UpstreamsDeps {
  /** URLs in query order. */
  readonly urls: readonly string[];
  readonly session: ProofSession;
  readonly log: Logger;
  /** Time limit for a read from one node in milliseconds. Default: 30,000. */
  readonly timeoutMs?: number | undefined;
}

/** Reader that queries several nodes. */
export interface Upstreams {
  /**
   * Returns the first proved response.
   *
   * @throws GatehouseError for a proved absence, or from the first node that rejected the request; ProofError fork with
   *   evidence; ProofError unprovable; NoProof.
   */
  read<I extends DescMessage, O extends DescMessage>(
    method: DescMethod & { readonly input: I; readonly output: O },
    request: MessageInitShape<I>,
  ): Promise<MessageShape<O>>;
}

/** Error if no node currently returns a proof. */
export class NoProof extends Error {}

/** Creates the reader of these nodes. */
export function createUpstreams({ urls, session, log, timeoutMs }: UpstreamsDeps): Upstreams {
  const upstreams = urls.map((url): Upstream => ({
    ...{ url, startRead: createStartRead(url, {}, timeoutMs) },
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

  /**
   * Decides if another node may do better. Throws an error that no other node can change. Returns an error to report if
   * no node returns a proof. Otherwise penalizes the node and returns undefined.
   */
  function classifyError(upstream: Upstream, error: unknown): GatehouseError | undefined {
    if (!(error instanceof GatehouseError)) {
      throw error;
    }
    if (!(error instanceof ProofError)) {
      if (!isFromNode(error)) {
        throw error;
      }
      if (!isTransient(error) && !noResponse.has(error.reason)) {
        return error;
      }
      penalize(upstream, "failing", error);
      return undefined;
    }
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

  return {
    async read(method, request) {
      let firstRejection: GatehouseError | undefined;
      for (const upstream of inOrder()) {
        try {
          const response = await answerProved(method, request, session.sourceOf(upstream.startRead()));
          upstream.penalizedUntilMs = 0;
          return response;
        } catch (error) {
          const rejection = classifyError(upstream, error);
          firstRejection ??= rejection;
        }
      }
      throw (
        firstRejection ??
        new NoProof("None of this light node's upstream nodes responds with a proof; see its log for the reasons.")
      );
    },
  };
}
