/**
 * The JSON-RPC entry point. Requests with `jsonrpc: "2.0"` follow the JSON-RPC 2.0 specification; requests without it
 * are the older envelope that existing clients of such networks speak, answered in its own shape.
 */
import { createJSONRPCErrorResponse, JSONRPCErrorCode, JSONRPCServer, type JSONRPCRequest } from "json-rpc-2.0";
import { parseJson } from "./parse-json.js";

/** Most requests of one batch. */
const maxBatch = 100;

/** Takes the text of a request body and gives the text of the answer, or undefined when only notifications came. */
export type JsonRpcEntry = (body: string) => Promise<string | undefined>;

/** The entry point. It has no methods yet: a well-formed request is told so. */
export function createJsonRpcEntry(): JsonRpcEntry {
  const server = new JSONRPCServer();

  return async (body) => {
    let request: unknown;
    try {
      request = parseJson(body);
    } catch {
      return JSON.stringify(createJSONRPCErrorResponse(null, JSONRPCErrorCode.ParseError, "Parse error"));
    }
    if (isOlderEnvelope(request)) {
      return JSON.stringify(olderAnswer(501, `Unknown method "${request.method.slice(0, 80)}".`));
    }
    if (Array.isArray(request) && request.length > maxBatch) {
      return JSON.stringify(
        createJSONRPCErrorResponse(
          null,
          JSONRPCErrorCode.InvalidRequest,
          `A batch holds at most ${maxBatch} requests.`,
        ),
      );
    }
    const answer = await server.receive(
      (Array.isArray(request) ? request.map(asObject) : asObject(request)) as JSONRPCRequest,
    );
    return answer === null ? undefined : JSON.stringify(answer);
  };
}

/** The library looks into every request; what is no object is no valid request either. */
function asObject(request: unknown): object {
  return typeof request === "object" && request !== null ? request : {};
}

function isOlderEnvelope(request: unknown): request is { method: string } {
  return (
    typeof request === "object" &&
    request !== null &&
    !Object.hasOwn(request, "jsonrpc") &&
    Object.hasOwn(request, "method") &&
    typeof (request as { method: unknown }).method === "string"
  );
}

function olderAnswer(result: number, response: unknown) {
  return { result, response, require_reply: false, extra: null };
}
