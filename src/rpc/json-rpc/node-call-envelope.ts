/** Node-call envelope: requests with `{method, params}` and without `jsonrpc`, with their own response format. */
import { RpcError } from "../errors.js";
import { toReportedError, type ProtocolDeps } from "../gate.js";
import type { JsonRpcRequest, RunForCaller } from "./request.js";

/** Calls a method by name, with named or positional parameters, and returns the JSON text of the response. */
export type CallByName = (name: string, params: unknown) => Promise<string>;

/** Handles a request of the node-call envelope and returns JSON text. Throws RpcError, like methods. */
export type HandleNodeCall = (method: string, params: unknown, call: CallByName) => Promise<string>;

interface NodeCallRequest {
  readonly method: string;
  readonly params?: unknown;
}

/** Returns true if a request uses the node-call envelope. */
export function isNodeCallRequest(request: unknown): request is NodeCallRequest {
  return (
    typeof request === "object" &&
    request !== null &&
    !Object.hasOwn(request, "jsonrpc") &&
    Object.hasOwn(request, "method") &&
    typeof (request as { method: unknown }).method === "string"
  );
}

interface NodeCallDeps extends Pick<ProtocolDeps, "onInternalError"> {
  readonly nodeCall: HandleNodeCall;
  readonly compiled: ReadonlyMap<string, RunForCaller>;
}

/**
 * Handles a request of the node-call envelope. Always returns a response, because the envelope has no notifications.
 */
export async function receiveNodeCall(
  { method, params }: NodeCallRequest,
  admitted: JsonRpcRequest,
  deps: NodeCallDeps,
): Promise<string> {
  const callByName: CallByName = async (name, named) => {
    const run = deps.compiled.get(name);
    if (run === undefined) {
      throw new RpcError("NOT_FOUND", `This node does not serve ${name}.`);
    }
    return await run(named, admitted);
  };
  try {
    return writeResponse(200, await deps.nodeCall(method, params, callByName));
  } catch (error) {
    admitted.failure = toReportedError(error, admitted.arrival.requestId, deps);
    const { kind, message, reason } = admitted.failure;
    // Clients would mistake a plain message for data.
    return writeResponse(kind.httpStatus, JSON.stringify({ error: message, errorCode: reason }));
  }
}

function writeResponse(result: number, response: string): string {
  return `{"result":${result},"response":${response},"require_reply":false,"extra":null}`;
}
