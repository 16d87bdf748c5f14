/** Session that handles one request of the Model Context Protocol. */
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
import type { DocumentInfo } from "../describe/openapi.js";
import type { RpcError } from "../errors.js";
import type { Call, ServedMethod } from "../service.js";
import type { McpTools } from "./mcp-tools.js";

/** Request, as the session sees it. */
export interface McpRequest {
  /** Returns the call for an rpc. Throws RpcError INVALID_SIGNATURE. */
  readonly callOf: (served: ServedMethod) => Call;
  /** Converts what an rpc threw to the error that the client may see. */
  readonly explain: (thrown: unknown) => RpcError;
}

/**
 * Opens a session for one request, because requests are stateless. Handlers are set individually on the SDK's low-level
 * server: `registerTool` accepts only zod schemas, but the contract provides JSON Schemas.
 */
export function openSession(tools: McpTools, info: DocumentInfo, request: McpRequest): McpServer {
  const session = new McpServer({ name: info.title, version: info.version });
  session.server.registerCapabilities({ tools: {}, resources: {} });
  handleTools(session, tools, request);
  handleResources(session, tools, request);
  return session;
}

function handleTools({ server }: McpServer, tools: McpTools, { callOf, explain }: McpRequest): void {
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: tools.describeTools() }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params: { name, arguments: args } }) => {
    const tool = tools.byName.get(name);
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
  server.setRequestHandler(ListResourcesRequestSchema, () => ({ resources: tools.resources.list() }));
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({
    resourceTemplates: tools.resources.listTemplates(),
  }));
  server.setRequestHandler(ReadResourceRequestSchema, async ({ params: { uri } }) => {
    const resource = tools.resources.find(uri);
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
