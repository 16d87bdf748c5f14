/** The node-call envelope, `{method, params}` without `jsonrpc`, which is answered in a shape of its own. */
import { RpcError } from "../errors.js";
import { toReportedError, type ProtocolDeps } from "../gate.js";
import type { JsonRpcRequest, RunForCaller } from "./request.js";

/** Calls a method by its name, with named or positional parameters, and gives the JSON text of the answer. */
export type CallByName = (name: string, params: unknown) => Promise<string>;

/** Answers a request of the node-call envelope with JSON text. Throws a Failure as methods do. */
export type AnswerNodeCall = (method: string, params: unknown, call: CallByName) => Promise<string>;

interface NodeCallRequest {
  readonly method: string;
  readonly params?: unknown;
}

/** Whether a request is one of the node-call envelope. */
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
  readonly nodeCall: AnswerNodeCall;
  readonly compiled: ReadonlyMap<string, RunForCaller>;
}

/** Answers a request of the node-call envelope: always, as it knows no notifications. */
export async function receiveNodeCall(
  { method, params }: NodeCallRequest,
  given: JsonRpcRequest,
  deps: NodeCallDeps,
): Promise<string> {
  const callByName: CallByName = async (name, named) => {
    const run = deps.compiled.get(name);
    if (run === undefined) {
      throw new RpcError("NOT_FOUND", `This node does not serve ${name}.`);
    }
    return await run(named, given);
  };
  try {
    return writeResponse(200, await deps.nodeCall(method, params, callByName));
  } catch (error) {
    given.failure = toReportedError(error, given.arrival.requestId, deps);
    const { kind, message, reason } = given.failure;
    // Clients take a bare sentence for data.
    return writeResponse(kind.httpStatus, JSON.stringify({ error: message, errorCode: reason }));
  }
}

function writeResponse(result: number, response: string): string {
  return `{"result":${result},"response":${response},"require_reply":false,"extra":null}`;
}
