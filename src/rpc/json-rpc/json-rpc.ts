/**
 * JSON-RPC entry point. Requests with `jsonrpc: "2.0"` follow the JSON-RPC 2.0 specification, and call unary rpcs by
 * name. Requests without it use the node-call envelope of existing clients, and get responses in that format.
 */
import { JSONRPCErrorCode, JSONRPCErrorException, type JSONRPCResponse, JSONRPCServer } from "json-rpc-2.0";
import { parseJson } from "../codec/json-request.js";
import { RpcError } from "../errors.js";
import { toReportedError, type ProtocolDeps } from "../gate.js";
import { type ServedMethod, withCaller } from "../service.js";
import { receiveBatch } from "./batch.js";
import { compileMethod, type NamedMethod } from "./named-methods.js";
import { asObject, errorText, idOf, isRequest, type JsonRpcRequest, serverError } from "./request.js";

export interface JsonRpcDeps extends Pick<ProtocolDeps, "gate" | "onInternalError"> {
  readonly methods: readonly NamedMethod[];
  readonly nodeCall: HandleNodeCall;
  readonly discover: () => string;
}

/** Calls a method by name, with named or positional parameters, and returns the JSON text of the response. */
export type CallByName = (name: string, params: unknown) => Promise<string>;

/** Handles a request of the node-call envelope and returns JSON text. Throws RpcError, like methods. */
export type HandleNodeCall = (method: string, params: unknown, call: CallByName) => Promise<string>;

interface EntryMethod {
  readonly served: ServedMethod | undefined;
  /**
   * Runs with named or positional parameters for the caller of a request, and returns the JSON text of the response.
   * Throws what the method throws, and RpcError INVALID_SIGNATURE.
   */
  readonly run: (params: unknown, admitted: JsonRpcRequest) => Promise<string>;
}

/** Returns the response text, or undefined if the request consists of notifications. */
export type JsonRpcEntry = (request: JsonRpcRequest) => Promise<string | undefined>;

export function createJsonRpcEntry(deps: JsonRpcDeps): JsonRpcEntry {
  const methods = new Map<string, EntryMethod>();
  for (const method of deps.methods) {
    const { name, served } = method;
    const run = compileMethod(method);
    methods.set(name, {
      served,
      run: async (params, { permit, call }) => await run(params, withCaller(call, permit.callerOf(served))),
    });
  }
  methods.set("rpc.discover", { served: undefined, run: async () => await Promise.resolve(deps.discover()) });

  const server = new JSONRPCServer<JsonRpcRequest>({ errorListener: () => undefined });
  for (const [name, { served, run }] of methods) {
    server.addMethod(name, async (params: unknown, admitted) => {
      try {
        admitted.permit.method = served;
        return new RawJson(await run(params, admitted));
      } catch (error) {
        const { reason, message, retryAfterS, kind } = recordFailure(error, admitted);
        const data = { reason, requestId: admitted.arrival.requestId, retryAfter: retryAfterS };
        throw new JSONRPCErrorException(message, kind.jsonRpcCode ?? serverError, data);
      }
    });
  }

  async function receive(request: unknown, admitted: JsonRpcRequest): Promise<string | undefined> {
    if (!isRequest(request)) {
      return errorText(JSONRPCErrorCode.InvalidRequest, "Invalid Request", idOf(request) ?? null);
    }
    const response = await server.receive(request, admitted);
    return response === null ? undefined : writeResponse(response);
  }

  function recordFailure(thrown: unknown, admitted: JsonRpcRequest): RpcError {
    return (admitted.failure = toReportedError(thrown, admitted.arrival.requestId, deps));
  }

  /** Handles a request of the node-call envelope. Always returns a response, because it has no notifications. */
  async function receiveNodeCall({ method, params }: NodeCallRequest, admitted: JsonRpcRequest): Promise<string> {
    const callByName: CallByName = async (name, named) => {
      const called = methods.get(name);
      if (called === undefined) {
        throw new RpcError("NOT_FOUND", `This node does not serve ${name}.`);
      }
      return await called.run(named, admitted);
    };
    try {
      return nodeCallText(200, await deps.nodeCall(method, params, callByName));
    } catch (error) {
      const { kind, message, reason } = recordFailure(error, admitted);
      // Clients would mistake a plain message for data.
      return nodeCallText(kind.httpStatus, JSON.stringify({ error: message, errorCode: reason }));
    }
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
    return isNodeCallRequest(request) ? await receiveNodeCall(request, admitted) : await receive(request, admitted);
  };
}

/** JSON text that is inserted into the response unchanged. */
class RawJson {
  constructor(readonly text: string) {}
}

function writeResponse(response: JSONRPCResponse): string {
  return response.result instanceof RawJson
    ? `{"jsonrpc":"2.0","id":${JSON.stringify(response.id)},"result":${response.result.text}}`
    : JSON.stringify(response);
}

/** Request of the node-call envelope: `{method, params}` without `jsonrpc`. */
interface NodeCallRequest {
  readonly method: string;
  readonly params?: unknown;
}

function isNodeCallRequest(request: unknown): request is NodeCallRequest {
  const { jsonrpc, method } = asObject(request);
  return jsonrpc === undefined && typeof method === "string";
}

function nodeCallText(result: number, response: string): string {
  return `{"result":${result},"response":${response},"require_reply":false,"extra":null}`;
}
