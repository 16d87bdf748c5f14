/** MCP tools for assistants: the read-only rpcs, some of them also as resources. */
import type { Tool } from "@modelcontextprotocol/sdk/types.js";
import { isRequired } from "../codec/fields.js";
import type { CommentOf } from "../describe/comments.js";
import { createSchemas } from "../describe/json-schema.js";
import { compileMethod, type NamedMethod, type RunMethod } from "../json-rpc/named-methods.js";
import type { ServedMethod } from "../service.js";
import { createResources, type Resources } from "./mcp-resources.js";

export interface McpToolsDeps {
  readonly methods: readonly NamedMethod[];
  /** Titles, by name, of methods without parameters that are also resources. */
  readonly resources: Readonly<Record<string, string>>;
  readonly commentOf: CommentOf;
}

/** Rpc that an assistant may call. */
export interface McpTool {
  readonly served: ServedMethod;
  readonly run: RunMethod;
}

export interface McpTools {
  readonly byName: ReadonlyMap<string, McpTool>;
  readonly resources: Resources;
  /** Returns the tools with their documentation and parameter schemas; computed on the first call. */
  describeTools(): Tool[];
}

export function createMcpTools({ methods, resources, commentOf }: McpToolsDeps): McpTools {
  const reads = methods.filter(({ isRead }) => isRead);
  const byName = new Map(
    reads.map((method) => [toolName(method.name), { served: method.served, run: compileMethod(method) }]),
  );
  let described: Tool[] | undefined;
  return {
    byName,
    resources: createResources({ reads, titles: resources, commentOf }),
    describeTools: () => (described ??= reads.map((method) => describeTool(method, commentOf))),
  };
}

/** Converts a method name to a tool name, which contains no dots. */
function toolName(name: string): string {
  return name.replace(".", "_");
}

function describeTool({ name, served: { desc } }: NamedMethod, commentOf: CommentOf): Tool {
  const schemas = createSchemas("request", "#/$defs/", commentOf);
  const properties = Object.fromEntries(
    desc.input.fields.map((field) => [
      field.jsonName,
      { description: commentOf(`${desc.input.typeName}.${field.name}`), ...schemas.field(field) },
    ]),
  );
  const required = desc.input.fields.filter(isRequired).map(({ jsonName }) => jsonName);
  return {
    name: toolName(name),
    description: commentOf(`${desc.parent.typeName}.${desc.name}`),
    inputSchema: { type: "object", properties, required, $defs: schemas.definitions() },
    annotations: { readOnlyHint: true },
  };
}
