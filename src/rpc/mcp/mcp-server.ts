/**
 * The rpcs that only read, as tools of the Model Context Protocol, for assistants: names, parameters and descriptions are
 * those of the contract. Each request stands alone, over Streamable HTTP at `/mcp`.
 */
/* eslint-disable @typescript-eslint/no-deprecated -- the SDK's other server takes no JSON Schema, which the contract gives */
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import {
  CallToolRequestSchema,
  ErrorCode,
  ListResourcesRequestSchema,
  ListToolsRequestSchema,
  McpError,
  ReadResourceRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Failure } from "../errors.js";
import type { CommentOf } from "../describe/comments.js";
import { type Admission, explain, type ProtocolParts } from "../gate.js";
import { HttpArrival, HttpCall } from "../http/http-exchange.js";
import { sendFailure } from "../http/http-reply.js";
import { createSchemas } from "../describe/json-schema.js";
import type { RpcListener } from "../port/listen.js";
import { compileMethod, type NamedMethod } from "../json-rpc/named-methods.js";
import type { DocumentInfo } from "../describe/openapi.js";
import { parseJson } from "../codec/parse-json.js";
import { maxBodyBytes, readBody } from "../http/read-body.js";
import type { Call } from "../service.js";
import { createSmallServer } from "../port/small-server.js";

/** What the server needs. */
export interface McpParts extends Pick<ProtocolParts, "gate" | "nextRequestId" | "onInternalError"> {
  readonly methods: readonly NamedMethod[];
  /** Methods without parameters that are resources as well: by name, with a title. */
  readonly resources: Readonly<Record<string, string>>;
  readonly info: DocumentInfo;
  readonly commentOf: CommentOf;
}

/** Builds the server, not listening yet. */
export function createMcpServer(parts: McpParts): RpcListener {
  const { gate, nextRequestId } = parts;
  const reads = parts.methods.filter(({ isRead }) => isRead);
  const run = new Map(reads.map((method) => [toolName(method.name), compileMethod(method)]));
  const byTool = new Map(reads.map(({ name, served }) => [toolName(name), served]));
  const resources = Object.entries(parts.resources).filter(([name]) => run.has(toolName(name)));
  let tools: ReturnType<typeof describeTools> | undefined;

  /** One for each request: nothing is kept between them. */
  function createSession(call: Call, arrival: HttpArrival, onFailure: (failure: Failure) => void): Server {
    const explained = (error: unknown): Failure => {
      const failure = explain(error, arrival.requestId, parts);
      onFailure(failure);
      return failure;
    };
    const session = new Server(
      { name: parts.info.title, version: parts.info.version },
      { capabilities: { tools: {}, resources: {} } },
    );
    session.setRequestHandler(ListToolsRequestSchema, () => ({
      tools: (tools ??= describeTools(reads, parts.commentOf)),
    }));
    session.setRequestHandler(CallToolRequestSchema, async ({ params: { name, arguments: given } }) => {
      const method = run.get(name);
      arrival.method = byTool.get(name);
      if (method === undefined) {
        throw new McpError(ErrorCode.InvalidParams, `There is no tool ${JSON.stringify(name.slice(0, 80))}.`);
      }
      try {
        return { content: [{ type: "text" as const, text: await method(given, call) }] };
      } catch (error) {
        const { reason, message } = explained(error);
        return { isError: true, content: [{ type: "text" as const, text: `${reason}: ${message}` }] };
      }
    });
    session.setRequestHandler(ListResourcesRequestSchema, () => ({
      resources: resources.map(([name, title]) => ({ uri: uriOf(name), name: title, mimeType: "application/json" })),
    }));
    session.setRequestHandler(ReadResourceRequestSchema, async ({ params: { uri } }) => {
      const [found] = resources.find(([name]) => uriOf(name) === uri) ?? [];
      if (found === undefined) {
        throw new McpError(ErrorCode.InvalidParams, "There is no such resource.");
      }
      try {
        const text = await run.get(toolName(found))!({}, call);
        return { contents: [{ uri, mimeType: "application/json", text }] };
      } catch (error) {
        throw new McpError(ErrorCode.InternalError, explained(error).message);
      }
    });
    return session;
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const requestId = nextRequestId();
    const arrival = new HttpArrival(requestId, "mcp", request, undefined);
    let admission: Admission | undefined;
    let failure: Failure | undefined;
    try {
      admission = gate.admit(arrival);
      checkOrigin(request);
      if (request.url?.split("?")[0] !== "/mcp") {
        throw new Failure("NOT_FOUND", "The tools are at /mcp.");
      }
      if (request.method !== "POST") {
        throw new Failure(
          "METHOD_NOT_ALLOWED",
          "Nothing is kept between requests, so there is only POST here.",
          undefined,
          [...["Allow", "POST"]],
        );
      }
      const body = parseJson(await readBody(request, maxBodyBytes));
      const session = createSession(new HttpCall(admission.caller, response), arrival, (told) => (failure = told));
      const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
      response.once("close", () => void session.close());
      // The SDK's own types of the two do not agree on what may be undefined.
      await session.connect(transport as Parameters<Server["connect"]>[0]);
      await transport.handleRequest(request, response, body);
    } catch (error) {
      failure = explain(error, requestId, parts);
      if (!response.headersSent) {
        sendFailure(response, requestId, failure);
      }
    }
    if (admission !== undefined) {
      gate.settle(admission, failure);
    }
  }

  return createSmallServer((request, response) => void handle(request, response));
}

/** Tools have no dots in their names. */
function toolName(name: string): string {
  return name.replace(".", "_");
}

function uriOf(name: string): string {
  return `gatehouse://${name.replace(".", "/")}`;
}

function describeTools(methods: readonly NamedMethod[], commentOf: CommentOf) {
  return methods.map(({ name, served: { desc } }) => {
    const schemas = createSchemas("request", "#/$defs/", commentOf);
    const properties = Object.fromEntries(
      desc.input.fields.map((field) => [
        field.jsonName,
        { description: commentOf(`${desc.input.typeName}.${field.name}`), ...schemas.field(field) },
      ]),
    );
    return {
      name: toolName(name),
      description: commentOf(`${desc.parent.typeName}.${desc.name}`),
      inputSchema: { type: "object" as const, properties, $defs: schemas.definitions() },
      annotations: { readOnlyHint: true },
    };
  });
}

/**
 * A page of another site must not reach a server on its visitor's machine by a name that leads there: requests of
 * browsers are for pages from this machine.
 */
function checkOrigin({ headers: { origin } }: IncomingMessage): void {
  if (origin === undefined) {
    return;
  }
  const host = URL.canParse(origin) ? new URL(origin).hostname : "";
  if (!/^(localhost|127\.0\.0\.1|\[::1\])$/.test(host)) {
    throw new Failure("PERMISSION_DENIED", "Pages of other sites may not call this server.");
  }
}
