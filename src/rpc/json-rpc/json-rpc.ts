/**
 * JSON-RPC entry point. Requests with `jsonrpc: "2.0"` follow the JSON-RPC 2.0 specification, and call unary rpcs by
 * name. Requests without it use the node-call envelope of existing clients, and get responses in that format.
 */
import { JSONRPCErrorCode, JSONRPCErrorException, JSONRPCServer, type JSONRPCResponse } from "json-rpc-2.0";
import { parseJson } from "../codec/json-request.js";
import { toReportedError, type ProtocolDeps } from "../gate.js";
import { receiveBatch } from "./batch.js";
import { withCaller } from "../service.js";
import { compileMethod, type NamedMethod } from "./named-methods.js";
import { isNodeCallRequest, type HandleNodeCall, receiveNodeCall } from "./node-call-envelope.js";
import { idOf, isRequest, type JsonRpcRequest, type RunForCaller, serverError, errorText } from "./request.js";

export interface JsonRpcDeps extends Pick<ProtocolDeps, "gate" | "onInternalError"> {
  readonly methods: readonly NamedMethod[];
  readonly nodeCall: HandleNodeCall;
  /** Returns the OpenRPC document, as JSON text. */
  readonly discover: () => string;
}

/** Returns the response text, or undefined if the request consists of notifications. */
export type JsonRpcEntry = (request: JsonRpcRequest) => Promise<string | undefined>;

/** JSON text that is inserted into the response unchanged. */
class RawJson {
  constructor(readonly text: string) {}
}

export function createJsonRpcEntry(deps: JsonRpcDeps): JsonRpcEntry {
  const compiled = new Map(deps.methods.map((method) => [method.name, compileForCaller(method)]));
  const server = createMethodServer(deps, compiled);

  async function receive(request: unknown, admitted: JsonRpcRequest): Promise<string | undefined> {
    if (!isRequest(request)) {
      return errorText(JSONRPCErrorCode.InvalidRequest, "Invalid Request", idOf(request) ?? null);
    }
    const response = await server.receive(request, admitted);
    return response === null ? undefined : writeResponse(response);
  }

  return async (admitted) => {
    let request: unknown;
    try {
      request = parseJson(admitted.body);
    } catch {
      return errorText(JSONRPCErrorCode.ParseError, "Parse error");
    }
    if (Array.isArray(request)) {
      return await receiveBatch(request, admitted, { gate: deps.gate, receive });
    }
    return isNodeCallRequest(request)
      ? await receiveNodeCall(request, admitted, { ...deps, compiled })
      : await receive(request, admitted);
  };
}

/** Compiles a method to run on behalf of the caller of a request. */
function compileForCaller(method: NamedMethod): RunForCaller {
  const run = compileMethod(method);
  return async (params, { permit, call }) => await run(params, withCaller(call, permit.callerOf(method.served)));
}

/** Creates the library's server with every method, by name. */
function createMethodServer(
  deps: JsonRpcDeps,
  compiled: ReadonlyMap<string, RunForCaller>,
): JSONRPCServer<JsonRpcRequest> {
  const server = new JSONRPCServer<JsonRpcRequest>({ errorListener: () => undefined });
  const addMethod = (
    name: string,
    run: (params: unknown, admitted: JsonRpcRequest) => Promise<string> | string,
  ): void =>
    server.addMethod(name, async (params: unknown, admitted) => {
      try {
        return new RawJson(await run(params, admitted));
      } catch (error) {
        throw toException(error, admitted, deps);
      }
    });
  for (const { name, served } of deps.methods) {
    const run = compiled.get(name)!;
    addMethod(name, (params, admitted) => {
      admitted.permit.method = served;
      return run(params, admitted);
    });
  }
  addMethod("rpc.discover", () => deps.discover());
  return server;
}

/** Converts a thrown value to a JSON-RPC 2.0 error. */
function toException(thrown: unknown, admitted: JsonRpcRequest, deps: JsonRpcDeps): JSONRPCErrorException {
  const { requestId } = admitted.arrival;
  admitted.failure = toReportedError(thrown, requestId, deps);
  const { reason, message, retryAfterS, kind } = admitted.failure;
  const data = { reason, requestId, ...(retryAfterS !== undefined && { retryAfter: retryAfterS }) };
  return new JSONRPCErrorException(message, kind.jsonRpcCode ?? serverError, data);
}

function writeResponse({ jsonrpc, id, result, error }: JSONRPCResponse): string {
  return error === undefined && result instanceof RawJson
    ? `{"jsonrpc":"${jsonrpc}","id":${JSON.stringify(id)},"result":${result.text}}`
    : JSON.stringify({ jsonrpc, id, ...(error === undefined ? { result: result as unknown } : { error }) });
}
