/** A node that is asked, and not believed. */
import type { DescMethod } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { toGatehouseError } from "../../client/src/errors.js";
import type { GatehouseError } from "../../client/src/gatehouse-error.js";
import type { AskNode } from "../../client/src/proof/source.js";
import { maxGenesisBytes, maxResponseBytes, startTimeout } from "../../client/src/response-limits.js";
import { InfoService } from "../../gen/gatehouse/info/v1/info_pb.js";

/** The time limit of a read, in milliseconds. */
const usualTimeoutMs = 30_000;

/** Starts a read: its calls share one time limit. They reject with GatehouseError. */
export type StartRead = () => AskNode;

/**
 * Returns what starts reads from a node.
 *
 * @param url of its public port; a path is one that a proxy puts before.
 * @param headers prove who asks, for what not everybody may read.
 */
export function askOver(
  url: string,
  headers: Readonly<Record<string, string>> = {},
  timeoutMs: number = usualTimeoutMs,
): StartRead {
  const connect = (readMaxBytes: number): Transport =>
    createConnectTransport({ baseUrl: url.replace(/\/+$/, ""), httpVersion: "1.1", readMaxBytes });
  const [transport, genesisTransport] = [connect(maxResponseBytes), connect(maxGenesisBytes)];
  return () => {
    const leftMs = startTimeout(timeoutMs);
    return async (method, request) => {
      const isGenesis = (method as DescMethod) === InfoService.method.getGenesis;
      try {
        const calls = isGenesis ? genesisTransport : transport;
        return (await calls.unary(method, undefined, leftMs(), headers, request)).message;
      } catch (thrown) {
        const error = toGatehouseError(thrown);
        nodesWords.add(error);
        throw error;
      }
    };
  };
}

const nodesWords = new WeakSet<GatehouseError>();

/** Whether a failure is a node's word, or that it gave none. Any other one is proved. */
export function isNodesWord(error: GatehouseError): boolean {
  return nodesWords.has(error);
}
