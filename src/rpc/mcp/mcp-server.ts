/**
 * Read-only rpcs as tools of the Model Context Protocol, for assistants. Names, parameters and descriptions come from
 * the contract. Requests are stateless, over Streamable HTTP at `/mcp`.
 */
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import {
  CallToolRequestSchema,
  ErrorCode,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  McpError,
  ReadResourceRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import type { IncomingMessage } from "node:http";
import { parseJson } from "../codec/json-request.js";
import type { DocumentInfo } from "../describe/openapi.js";
import { RpcError } from "../errors.js";
import type { Http1Exchange } from "../exchange/http1-exchange.js";
import { maxBodyBytes } from "../exchange/body.js";
import { errorResponse, nosniff } from "../exchange/responses.js";
import { nextTick } from "../exchange/pacing.js";
import { serveExchange } from "../exchange/serve.js";
import { toReportedError, type ProtocolDeps } from "../gate.js";
import type { RpcListener } from "../port/listen.js";
import { createHttp1Port } from "../port/port.js";
import { type Call, type ServedMethod, withCaller } from "../service.js";
import { createMcpTools, type McpTools, type McpToolsDeps } from "./mcp-tools.js";
import { checkProtocolVersion, readMcpRequests, RequestTransport } from "./request-transport.js";

export interface McpDeps extends McpToolsDeps, Pick<ProtocolDeps, "gate" | "onInternalError"> {
  readonly info: DocumentInfo;
  /** Returns a request ID, for the log and the response. */
  readonly nextRequestId: () => string;
}

export function createMcpServer(deps: McpDeps): RpcListener {
  const tools = createMcpTools(deps);

  function handle(exchange: Http1Exchange): void {
    const { requestId, request } = exchange;
    serveExchange(
      exchange,
      {
        protocol: "mcp",
        method: undefined,
        async respond(permit, call) {
          checkOrigin(request);
          checkTarget(request);
          checkProtocolVersion(exchange.header("mcp-protocol-version"));
          const bytes = await exchange.readBytes(maxBodyBytes, permit);
          // The SDK takes milliseconds for a request, so each gets a tick of its own, and other clients theirs.
          await nextTick();
          let failure: RpcError | undefined;
          const session = openSession(tools, deps.info, {
            callOf(served) {
              permit.method = served;
              return withCaller(call, permit.callerOf(served));
            },
            explain: (thrown) => (failure = toReportedError(thrown, requestId, deps)),
          });
          const transport = new RequestTransport(readMcpRequests(parseJson(bytes)));
          exchange.onClose(() => void session.close());
          await session.connect(transport);
          const text = await transport.run();
          permit.recordOutcome(failure);
          return text === undefined
            ? { status: 202, headers: ["X-Request-Id", requestId] }
            : {
                status: 200,
                headers: ["Content-Type", "application/json", "X-Request-Id", requestId, ...nosniff, ...permit.headers],
                body: text,
              };
        },
        reject: (failure, headers) => errorResponse(requestId, failure, headers),
      },
      deps,
    );
  }

  return createHttp1Port(deps, handle);
}

interface McpRequest {
  /** Returns the call for an rpc. Throws RpcError INVALID_SIGNATURE. */
  readonly callOf: (served: ServedMethod) => Call;
  /** Converts what an rpc threw to the error that the client may see. */
  readonly explain: (thrown: unknown) => RpcError;
}

/**
 * Opens a session for one request, because requests are stateless. Handlers are set individually on the SDK's low-level
 * server: `registerTool` accepts only zod schemas, but the contract provides JSON Schemas.
 */
function openSession(tools: McpTools, info: DocumentInfo, request: McpRequest): McpServer {
  const session = new McpServer({ name: info.title, version: info.version });
  session.server.registerCapabilities({ tools: {}, resources: {} });
  handleTools(session, tools, request);
  handleResources(session, tools, request);
  return session;
}

function handleTools({ server }: McpServer, tools: McpTools, { callOf, explain }: McpRequest): void {
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: tools.list() }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params: { name, arguments: args } }) => {
    const tool = tools.find(name);
    if (tool === undefined) {
      throw new McpError(ErrorCode.InvalidParams, `There is no tool ${JSON.stringify(name.slice(0, 80))}.`);
    }
    try {
      return { content: [{ type: "text", text: await tool.run(args, callOf(tool.served)) }] };
    } catch (error) {
      const { reason, message } = explain(error);
      return { isError: true, content: [{ type: "text", text: `${reason}: ${message}` }] };
    }
  });
}

function handleResources({ server }: McpServer, tools: McpTools, { callOf, explain }: McpRequest): void {
  server.setRequestHandler(ListResourcesRequestSchema, () => ({ resources: tools.listResources() }));
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({
    resourceTemplates: tools.listTemplates(),
  }));
  server.setRequestHandler(ReadResourceRequestSchema, async ({ params: { uri } }) => {
    const resource = tools.findResource(uri);
    if (resource === undefined) {
      throw new McpError(resourceNotFound, "There is no such resource.", { uri });
    }
    try {
      return { contents: [{ uri, mimeType: "application/json", text: await resource.read(callOf(resource.served)) }] };
    } catch (error) {
      const { kind, message, reason } = explain(error);
      throw new McpError(errorCodes.get(kind.httpStatus) ?? ErrorCode.InternalError, message, { uri, reason });
    }
  });
}

/** Error code of the protocol for unknown resources. The library defines no name for this code. */
const resourceNotFound = -32_002;
const errorCodes: ReadonlyMap<number, number> = new Map([
  [400, ErrorCode.InvalidParams],
  [404, resourceNotFound],
]);

/**
 * Rejects browser requests unless their page comes from this machine. Otherwise a page of another site could reach a
 * server on its visitor's machine by DNS rebinding.
 */
function checkOrigin({ headers: { origin } }: IncomingMessage): void {
  if (origin === undefined) {
    return;
  }
  const host = URL.canParse(origin) ? new URL(origin).hostname : "";
  if (!/^(localhost|127\.0\.0\.1|\[::1\])$/.test(host)) {
    throw new RpcError("PERMISSION_DENIED", "Pages of other sites may not call this server.");
  }
}

function checkTarget({ url, method, headers }: IncomingMessage): void {
  if (!/^\/mcp\/?(\?|$)/.test(url ?? "")) {
    throw new RpcError("NOT_FOUND", "The tools are at /mcp.");
  }
  if (method !== "POST") {
    const message = "This server has no sessions, so it accepts only POST.";
    throw new RpcError("METHOD_NOT_ALLOWED", message, undefined, ["Allow", "POST"]);
  }
  // Browsers send other types to other sites without a preflight.
  if (!/^application\/json\s*(;|$)/i.test(headers["content-type"] ?? "")) {
    throw new RpcError("UNSUPPORTED_MEDIA_TYPE", "The Content-Type must be application/json.");
  }
}
