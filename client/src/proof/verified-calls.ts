/**
 * Transport that accepts only proven responses. It is below the typed services, so that no call can bypass
 * verification.
 */
import { create, type DescMessage, type DescMethodUnary, type MessageInitShape } from "@bufbuild/protobuf";
import { createContextValues, type Transport } from "@connectrpc/connect";
import { startTimeout } from "../response-limits.js";
import { answerProved } from "./reads.js";
import type { ProofSession } from "./session.js";
import { type AskNode, unprovable } from "./source.js";

/**
 * Wraps a transport.
 *
 * @param transport calls the node, with retries and identity.
 * @param defaultTimeoutMs default time limit in milliseconds for all calls of one read.
 */
export function verifyCalls(transport: Transport, session: ProofSession, defaultTimeoutMs: number): Transport {
  return {
    async unary(method, signal, timeoutMs = defaultTimeoutMs, header, input, contextValues = createContextValues()) {
      const leftMs = startTimeout(timeoutMs);
      const ask: AskNode = async <I extends DescMessage, O extends DescMessage>(
        nodeMethod: DescMethodUnary<I, O>,
        request: MessageInitShape<I>,
      ) => (await transport.unary(nodeMethod, signal, leftMs(), header, request, contextValues)).message;
      const message = await answerProved(method, create(method.input, input), session.sourceOf(ask));
      const noMetadata = { header: new Headers(), trailer: new Headers() };
      return { stream: false, service: method.parent, method, ...noMetadata, message };
    },
    stream: (method) => Promise.reject(unprovable(`A stream of ${method.parent.typeName}.${method.name}`)),
  };
}
