/** Several nodes that are asked in turn, of which none is believed. */
import type { DescMessage, DescMethod, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { isTransient } from "../../client/src/errors.js";
import { type FailureReason, GatehouseError } from "../../client/src/gatehouse-error.js";
import { ProofError, type ProofFlaw } from "../../client/src/proof/proof-error.js";
import { answerProved } from "../../client/src/proof/reads.js";
import type { ProofSession } from "../../client/src/proof/session.js";
import type { Logger } from "../base/logging/log.js";
import { askOver, isNodesWord, type StartRead } from "./upstream.js";

/** How long a node is left alone. */
const leftForMs = { lying: 600_000, failing: 5_000 };

/** Flaws of who is behind, or has a clock that is wrong; every other one is made. */
const late: ReadonlySet<ProofFlaw> = new Set<ProofFlaw>(["age", "rollback"]);

/** What is no refusal of a node, beside what passes: it took too long, or what answered is none. */
const noAnswer: ReadonlySet<FailureReason> = new Set<FailureReason>(["DEADLINE_EXCEEDED", "UNSPECIFIED"]);

interface Upstream {
  readonly url: string;
  readonly startRead: StartRead;
  leftUntilMs: number;
  isLying: boolean;
}

/** What they are asked with. */
export interface UpstreamsDeps {
  /** In the order in which they are asked. */
  readonly urls: readonly string[];
  readonly session: ProofSession;
  readonly log: Logger;
  /** The time limit of a read from one of them; 30 seconds when left out. */
  readonly timeoutMs?: number | undefined;
}

/** Answers reads. */
export interface Upstreams {
  /**
   * The first answer that is proved.
   *
   * @throws GatehouseError of what is proved not to be there, or of the first node that refused; ProofError fork with evidence,
   * and unprovable; NobodyProves.
   */
  answer<I extends DescMessage, O extends DescMessage>(
    method: DescMethod & { readonly input: I; readonly output: O },
    request: MessageInitShape<I>,
  ): Promise<MessageShape<O>>;
}

/** No node answers with a proof at this time. */
export class NobodyProves extends Error {}

/** Asks these nodes. */
export function createUpstreams({ urls, session, log, timeoutMs }: UpstreamsDeps): Upstreams {
  const upstreams = urls.map((url): Upstream => ({
    ...{ url, startRead: askOver(url, {}, timeoutMs) },
    ...{ leftUntilMs: 0, isLying: false },
  }));

  /** Those that are left alone come last; who lied not at all, until its time is over. */
  function inOrder(): Upstream[] {
    const now = Date.now();
    const isLeft = ({ leftUntilMs }: Upstream): boolean => leftUntilMs > now;
    const asked = upstreams.filter((one) => !isLeft(one));
    return [...asked, ...upstreams.filter((one) => isLeft(one) && !one.isLying)];
  }

  function leave(upstream: Upstream, why: keyof typeof leftForMs, { message }: Error): void {
    upstream.isLying = why === "lying";
    upstream.leftUntilMs = Date.now() + leftForMs[why];
    const fields = { subsystem: "light", node: upstream.url, seconds: leftForMs[why] / 1000 };
    if (upstream.isLying) {
      log.error(fields, `${upstream.url} lies: ${message}`);
    } else {
      log.warn(fields, `${upstream.url} is left alone: ${message}`);
    }
  }

  /** Whether another node may do better; throws where none can. */
  function judge(upstream: Upstream, error: unknown): GatehouseError | undefined {
    if (!(error instanceof GatehouseError)) {
      throw error;
    }
    if (!(error instanceof ProofError)) {
      if (!isNodesWord(error)) {
        throw error;
      }
      if (!isTransient(error) && !noAnswer.has(error.reason)) {
        return error;
      }
      leave(upstream, "failing", error);
      return undefined;
    }
    if (error.flaw === "fork") {
      throw error;
    }
    // Another node may name the block that shows it.
    if (error.flaw === "unprovable") {
      return error;
    }
    leave(upstream, late.has(error.flaw) ? "failing" : "lying", error);
    return undefined;
  }

  return {
    async answer(method, request) {
      let refusal: GatehouseError | undefined;
      for (const upstream of inOrder()) {
        try {
          const answer = await answerProved(method, request, session.sourceOf(upstream.startRead()));
          upstream.leftUntilMs = 0;
          return answer;
        } catch (error) {
          refusal ??= judge(upstream, error);
        }
      }
      throw refusal ?? new NobodyProves("None of the nodes that this one asks answers with a proof; its log says why.");
    },
  };
}
