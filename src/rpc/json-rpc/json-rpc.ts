/**
 * The JSON-RPC entry point. Requests with `jsonrpc: "2.0"` follow the JSON-RPC 2.0 specification and call every unary
 * rpc by its name; requests without it are the node-call envelope that existing clients of such networks speak, answered
 * in its own shape.
 */
import {
  createJSONRPCErrorResponse,
  JSONRPCErrorCode,
  JSONRPCErrorException,
  JSONRPCServer,
  type JSONRPCRequest,
  type JSONRPCResponse,
} from "json-rpc-2.0";
import { Failure } from "../errors.js";
import { explain, type ProtocolParts } from "../gate.js";
import { HttpArrival } from "../http/http-exchange.js";
import { compileMethod, type NamedMethod } from "./named-methods.js";
import { parseJson } from "../codec/parse-json.js";
import type { Call } from "../service.js";
import type { IncomingMessage } from "node:http";

/** Most requests of one batch. */
const maxBatch = 100;
/** A batch whose answers have become longer than this is answered with failures from there on. */
const maxAnswerLength = 16 * 1024 * 1024;
/** Code of failures that have none of their own; the error's data tells the reason of all. */
export const serverError = -32_000;

/** Calls a method by its name, with named or positional parameters, and gives the JSON text of the answer. */
export type CallByName = (name: string, params: unknown) => Promise<string>;

/**
 * Answers a request of the node-call envelope with JSON text; undefined for one that it does not know. Throws a Failure
 * as methods do.
 */
export type AnswerNodeCall = (method: string, params: unknown, call: CallByName) => Promise<string | undefined>;

export interface JsonRpcParts extends Pick<ProtocolParts, "gate" | "nextRequestId" | "onInternalError"> {
  readonly methods: readonly NamedMethod[];
  readonly nodeCall: AnswerNodeCall;
  /** The OpenRPC document, as JSON text. */
  readonly discover: () => string;
}

/** A request that came in and was let in. */
export interface JsonRpcRequest {
  readonly body: string;
  readonly request: IncomingMessage;
  readonly arrival: HttpArrival;
  readonly call: Call;
  /** Set when it failed, in whatever shape the caller is told of it. */
  failure?: Failure;
}

/** Gives the text of the answer, or undefined when only notifications came. */
export type JsonRpcEntry = (request: JsonRpcRequest) => Promise<string | undefined>;

/** JSON text that goes into the answer as it is. */
class RawJson {
  constructor(readonly text: string) {}
}

export function createJsonRpcEntry(parts: JsonRpcParts): JsonRpcEntry {
  const { methods, nodeCall, discover } = parts;
  const compiled = new Map(methods.map((method) => [method.name, compileMethod(method)]));
  const server = new JSONRPCServer<JsonRpcRequest>({ errorListener: () => undefined });
  for (const { name, served } of methods) {
    const run = compiled.get(name)!;
    server.addMethod(name, (params: unknown, given) => {
      given.arrival.method = served;
      return answer(given, async () => new RawJson(await run(params, given.call)));
    });
  }
  server.addMethod("rpc.discover", () => new RawJson(discover()));

  /** What a method throws, as the specification has it. */
  async function answer<T>(given: JsonRpcRequest, run: () => Promise<T>): Promise<T> {
    const { requestId } = given.arrival;
    try {
      return await run();
    } catch (error) {
      given.failure = explain(error, requestId, parts);
      const { reason, message, retryAfterS, kind } = given.failure;
      const data = { reason, requestId, ...(retryAfterS !== undefined && { retryAfter: retryAfterS }) };
      throw new JSONRPCErrorException(message, kind.jsonRpcCode ?? serverError, data);
    }
  }

  async function receive(request: unknown, given: JsonRpcRequest): Promise<string | undefined> {
    const response = await server.receive(asObject(request) as JSONRPCRequest, given);
    return response === null ? undefined : write(response);
  }

  async function receiveBatch(requests: readonly unknown[], given: JsonRpcRequest): Promise<string | undefined> {
    if (requests.length === 0 || requests.length > maxBatch) {
      return failure(JSONRPCErrorCode.InvalidRequest, `A batch holds 1 to ${maxBatch} requests.`);
    }
    const answers: string[] = [];
    let length = 0;
    for (const [i, request] of requests.entries()) {
      if (length > maxAnswerLength) {
        answers.push(...refuse(request, "The answers to this batch are too long; ask for fewer at once."));
        continue;
      }
      const text = await (i === 0 ? receive(request, given) : receiveCounted(request, given));
      if (text !== undefined) {
        answers.push(text);
        length += text.length;
      }
    }
    return answers.length === 0 ? undefined : `[${answers.join(",")}]`;
  }

  /** Each request of a batch counts as one; the first was counted when the batch came. */
  async function receiveCounted(request: unknown, given: JsonRpcRequest): Promise<string | undefined> {
    const arrival = new HttpArrival(given.arrival.requestId, "json-rpc", given.request, undefined);
    let admission;
    try {
      admission = parts.gate.admit(arrival);
    } catch (error) {
      const { reason, message, retryAfterS } = error as Failure;
      return refuse(request, message, { reason, retryAfter: retryAfterS })[0];
    }
    const own: JsonRpcRequest = { ...given, arrival };
    try {
      return await receive(request, own);
    } finally {
      parts.gate.settle(admission, own.failure);
    }
  }

  async function receiveNodeCall({ method, params }: NodeCallRequest, given: JsonRpcRequest): Promise<string> {
    const callByName: CallByName = async (name, named) => {
      const run = compiled.get(name);
      if (run === undefined) {
        throw new Failure("NOT_FOUND", `This node does not serve ${name}.`);
      }
      return await run(named, given.call);
    };
    try {
      const text = await nodeCall(method, params, callByName);
      return text === undefined
        ? nodeCallResponse(501, JSON.stringify(`Unknown method "${method.slice(0, 80)}".`))
        : nodeCallResponse(200, text);
    } catch (error) {
      given.failure = explain(error, given.arrival.requestId, parts);
      const { kind, message } = given.failure;
      return nodeCallResponse(kind.httpStatus, JSON.stringify(message));
    }
  }

  return async (given) => {
    let request: unknown;
    try {
      request = parseJson(given.body);
    } catch {
      return failure(JSONRPCErrorCode.ParseError, "Parse error");
    }
    if (Array.isArray(request)) {
      return await receiveBatch(request, given);
    }
    return isNodeCallRequest(request) ? await receiveNodeCall(request, given) : await receive(request, given);
  };
}

function write({ jsonrpc, id, result, error }: JSONRPCResponse): string {
  return error === undefined && result instanceof RawJson
    ? `{"jsonrpc":"${jsonrpc}","id":${JSON.stringify(id)},"result":${result.text}}`
    : JSON.stringify({ jsonrpc, id, ...(error === undefined ? { result: result as unknown } : { error }) });
}

function failure(code: number, message: string, id: string | number | null = null, data?: object): string {
  return JSON.stringify(createJSONRPCErrorResponse(id, code, message, data));
}

/** The answer to a request of a batch that is not looked at; none to a notification. */
function refuse(request: unknown, message: string, data?: object): string[] {
  const { id } = asObject(request) as { readonly id?: string | number | null };
  return id === undefined ? [] : [failure(serverError, message, id, data)];
}

/** The library looks into every request; what is no object is no valid request either. */
function asObject(request: unknown): object {
  return typeof request === "object" && request !== null && !Array.isArray(request) ? request : {};
}

interface NodeCallRequest {
  readonly method: string;
  readonly params?: unknown;
}

function isNodeCallRequest(request: unknown): request is NodeCallRequest {
  return (
    typeof request === "object" &&
    request !== null &&
    !Object.hasOwn(request, "jsonrpc") &&
    Object.hasOwn(request, "method") &&
    typeof (request as { method: unknown }).method === "string"
  );
}

function nodeCallResponse(result: number, response: string): string {
  return `{"result":${result},"response":${response},"require_reply":false,"extra":null}`;
}
