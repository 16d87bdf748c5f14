/** A node that is asked, and not believed. */
import { createConnectTransport } from "@connectrpc/connect-node";
import { toGatehouseError } from "../../client/src/errors.js";
import type { GatehouseError } from "../../client/src/gatehouse-error.js";
import type { AskNode } from "../../client/src/proof/source.js";

/** How long a call may take, and how much an answer may be: a document of 16 MiB and what proves it. */
const bounds = { defaultTimeoutMs: 30_000, readMaxBytes: 64 * 1024 * 1024 };

/**
 * Calls a node. Rejects with GatehouseError.
 *
 * @param url of its public port; a path is one that a proxy puts before.
 * @param headers prove who asks, for what not everybody may read.
 */
export function askOver(url: string, headers: Readonly<Record<string, string>> = {}): AskNode {
  const transport = createConnectTransport({ baseUrl: url.replace(/\/+$/, ""), httpVersion: "1.1", ...bounds });
  return async (method, request) => {
    try {
      return (await transport.unary(method, undefined, undefined, headers, request)).message;
    } catch (thrown) {
      const error = toGatehouseError(thrown);
      nodesWords.add(error);
      throw error;
    }
  };
}

const nodesWords = new WeakSet<GatehouseError>();

/** Whether a failure is a node's word, or that it gave none. Any other one is proved. */
export function isNodesWord(error: GatehouseError): boolean {
  return nodesWords.has(error);
}
