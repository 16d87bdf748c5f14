/** Client of an untrusted node. */
import type { DescMethod } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { toGatehouseError } from "../../client/src/errors.js";
import type { GatehouseError } from "../../client/src/gatehouse-error.js";
import type { AskNode } from "../../client/src/proof/source.js";
import { maxGenesisBytes, maxResponseBytes, startTimeout } from "../../client/src/response-limits.js";
import { InfoService } from "../../gen/gatehouse/info/v1/info_pb.js";

/** Default time limit for a read in milliseconds. */
const defaultTimeoutMs = 30_000;

/** Starts a read. All calls of a read share one time limit, and reject with GatehouseError. */
export type StartRead = () => AskNode;

/**
 * Returns the function that starts reads from a node.
 *
 * @param url URL of the node's public port, with the path prefix of a proxy, if any.
 * @param headers Headers that prove the identity of the caller, for data with restricted access.
 */
export function createStartRead(
  url: string,
  headers: Readonly<Record<string, string>> = {},
  timeoutMs: number = defaultTimeoutMs,
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
        nodeErrors.add(error);
        throw error;
      }
    };
  };
}

/** Errors that the node reported or caused, as opposed to errors that a proof shows. */
const nodeErrors = new WeakSet<GatehouseError>();

/** Returns true if the error is a statement of the node or a lack of a response. Every other error is proved. */
export function isFromNode(error: GatehouseError): boolean {
  return nodeErrors.has(error);
}
