/**
 * JSON-RPC entry point. Requests with `jsonrpc: "2.0"` follow the JSON-RPC 2.0 specification, and call unary rpcs by
 * name. Requests without it use the node-call envelope of existing clients, and get responses in that format.
 */
import { errorMessage } from "../../base/errors/error-message.js";
import type { Json, JsonMembers } from "../../base/text/parse-json.js";
import { parseJson } from "../codec/json-request.js";
import { type Reason, RpcError } from "../errors.js";
import { toReportedError, type ProtocolDeps } from "../gate.js";
import { type ServedMethod, withCaller } from "../service.js";
import { receiveBatch } from "./batch.js";
import { compileMethod, type NamedMethod } from "./named-methods.js";
import {
  errorText,
  idOf,
  invalidRequest,
  isRequest,
  type JsonRpcRequest,
  membersOf,
  methodNotFound,
  parseError,
  serverError,
} from "./request.js";

export interface JsonRpcDeps extends Pick<ProtocolDeps, "gate" | "onInternalError"> {
  readonly methods: readonly NamedMethod[];
  readonly nodeCall: HandleNodeCall;
  readonly discover: () => string;
}

/** Calls a method by name, with named or positional parameters, and returns the JSON text of the response. */
export type CallByName = (name: string, params: unknown) => Promise<string>;

/** Handles a request of the node-call envelope and returns JSON text. Throws RpcError, like methods. */
export type HandleNodeCall = (method: string, params: unknown, call: CallByName) => Promise<string>;

/** Error of a node-call, with members that clients read in every response. */
export class NodeCallError extends RpcError {
  constructor(
    reason: Reason,
    message: string,
    readonly members: object,
  ) {
    super(reason, message);
  }
}

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

  async function receive(request: Json, admitted: JsonRpcRequest): Promise<string | undefined> {
    const id = idOf(request);
    if (!isRequest(request)) {
      return errorText(invalidRequest, "Invalid Request", id);
    }
    const text = await respond(request, admitted, id);
    return id === undefined ? undefined : text;
  }

  async function respond(
    { method, params }: JsonMembers & { readonly method: string },
    admitted: JsonRpcRequest,
    id: string | undefined,
  ): Promise<string> {
    const called = methods.get(method);
    if (called === undefined) {
      return errorText(methodNotFound, "Method not found", id);
    }
    try {
      admitted.permit.method = called.served;
      return `{"jsonrpc":"2.0","id":${id},"result":${await called.run(params, admitted)}}`;
    } catch (error) {
      const { reason, message, retryAfterS, kind } = recordFailure(error, admitted);
      const data = { reason, requestId: admitted.arrival.requestId, retryAfter: retryAfterS };
      return errorText(kind.jsonRpcCode ?? serverError, message, id, data);
    }
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
      const { kind, message, reason, retryAfterS } = recordFailure(error, admitted);
      const members = error instanceof NodeCallError ? error.members : {};
      // Clients would mistake a plain message for data.
      const response = { error: message, errorCode: reason, retryAfter: retryAfterS, ...members };
      return nodeCallText(kind.httpStatus, JSON.stringify(response));
    }
  }

  return async (admitted) => {
    let request: Json;
    try {
      request = parseJson(admitted.body);
    } catch (error) {
      return errorText(parseError, `Parse error: ${errorMessage(error)}`);
    }
    if (Array.isArray(request)) {
      return await receiveBatch(request, admitted, { gate: deps.gate, receive });
    }
    return isNodeCallRequest(request) ? await receiveNodeCall(request, admitted) : await receive(request, admitted);
  };
}

/** Request of the node-call envelope: `{method, params}` without `jsonrpc`. */
interface NodeCallRequest {
  readonly method: string;
  readonly params?: unknown;
}

function isNodeCallRequest(request: Json): request is JsonMembers & NodeCallRequest {
  const { jsonrpc, method } = membersOf(request);
  return jsonrpc === undefined && typeof method === "string";
}

function nodeCallText(result: number, response: string): string {
  return `{"result":${result},"response":${response},"require_reply":false,"extra":null}`;
}
