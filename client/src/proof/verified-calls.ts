/** A transport that believes what is proved alone: under the typed services, so that there is one way around it, none. */
import { create, type DescMessage, type DescMethodUnary, type MessageInitShape } from "@bufbuild/protobuf";
import { createContextValues, type Transport } from "@connectrpc/connect";
import { startTimeout } from "../response-limits.js";
import { answerProved } from "./reads.js";
import type { ProofSession } from "./session.js";
import { type AskNode, unprovable } from "./source.js";

/**
 * Wraps a transport.
 *
 * @param transport calls the node, and has retries and identity.
 * @param usualTimeoutMs for all calls of one read, where the read says nothing.
 */
export function verifyCalls(transport: Transport, session: ProofSession, usualTimeoutMs: number): Transport {
  return {
    async unary(method, signal, timeoutMs = usualTimeoutMs, header, input, contextValues = createContextValues()) {
      const leftMs = startTimeout(timeoutMs);
      const ask: AskNode = async <I extends DescMessage, O extends DescMessage>(
        asked: DescMethodUnary<I, O>,
        request: MessageInitShape<I>,
      ) => (await transport.unary(asked, signal, leftMs(), header, request, contextValues)).message;
      const message = await answerProved(method, create(method.input, input), session.sourceOf(ask));
      const none = { header: new Headers(), trailer: new Headers() };
      return { stream: false, service: method.parent, method, ...none, message };
    },
    stream: (method) => Promise.reject(unprovable(`A stream of ${method.parent.typeName}.${method.name}`)),
  };
}
