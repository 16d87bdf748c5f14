/**
 * MCP tools for assistants: the read-only rpcs. Some are also resources: `gatehouse://<area>/<method>`, then a segment
 * for each required parameter, then a query with optional parameters.
 */
import type { DescField } from "@bufbuild/protobuf";
import type { Resource, ResourceTemplate, Tool } from "@modelcontextprotocol/sdk/types.js";
import { isRequired } from "../codec/fields.js";
import { commentOf } from "../describe/comments.js";
import { createSchemas } from "../describe/json-schema.js";
import { splitPath } from "../http/route-table.js";
import { compileRequestBinder } from "../http/request-binder.js";
import { compileMethod, compileRequest, type NamedMethod } from "../json-rpc/named-methods.js";
import { type Call, fullNameOf } from "../service.js";

export interface McpToolsDeps {
  readonly methods: readonly NamedMethod[];
  /** Titles, by name, of methods without parameters that are also resources. */
  readonly resources: Readonly<Record<string, string>>;
}

export type McpTools = ReturnType<typeof createMcpTools>;

const scheme = "gatehouse://";
const mimeType = "application/json";

export function createMcpTools({ methods, resources: titles }: McpToolsDeps) {
  const reads = methods.filter(({ isRead }) => isRead);
  const tools = new Map(reads.map((method) => [toolName(method), { ...method, run: compileMethod(method) }]));
  const isTitled = ({ name }: NamedMethod): boolean => Object.hasOwn(titles, name);
  const resources = reads.filter((method) => requiredOf(method).length > 0 || isTitled(method));
  const byLocation = new Map(resources.map((method) => [locationOf(method), compileResource(method)]));
  let described: Tool[] | undefined;

  return {
    find: (name: string) => tools.get(name),
    /** Returns the tools with their documentation and parameter schemas; computed on the first call. */
    list: (): Tool[] => (described ??= reads.map(describeTool)),
    /** Returns the resources without parameters. */
    listResources: (): Resource[] =>
      Object.entries(titles).flatMap(([name, title]) => {
        const method = resources.find((candidate) => candidate.name === name);
        return method === undefined ? [] : [{ uri: `${scheme}${locationOf(method)}`, name: title, mimeType }];
      }),
    /** Returns the URI templates of the resources with parameters. */
    listTemplates: (): ResourceTemplate[] => resources.filter((method) => !isTitled(method)).map(describeTemplate),
    /** Returns the resource with this URI; undefined if there is none. */
    findResource(uri: string) {
      const [path, query = ""] = uri.split(/\?(.*)/s, 2) as [string, string?];
      const segments = path.startsWith(scheme) ? splitPath(`/${path.slice(scheme.length)}`) : undefined;
      const [area, method, ...parameters] = segments ?? [];
      return byLocation.get(`${area}/${method}`)?.(parameters, query);
    },
  };
}

/** Converts the name of a method to a tool name, which contains no dots. */
function toolName({ name }: NamedMethod): string {
  return name.replace(".", "_");
}

/** Returns the location of a method in its URI, such as `storage/getProgram`. */
function locationOf({ name }: NamedMethod): string {
  return name.replace(".", "/");
}

function requiredOf({ served }: NamedMethod): DescField[] {
  return served.desc.input.fields.filter(isRequired);
}

/**
 * Compiles a resource: a function that returns the resource for parameters and a query, or undefined if the number of
 * parameters is wrong. `read` returns JSON text, and throws what the method throws and errors for invalid parameters.
 */
function compileResource(method: NamedMethod) {
  const { served } = method;
  const names = requiredOf(method).map(({ name }) => name);
  const bind = compileRequestBinder(served.desc.input, names, undefined);
  const run = compileRequest(method);
  return (parameters: readonly string[], query: string) =>
    parameters.length === names.length
      ? { served, read: async (call: Call) => await run(bind(parameters, query, undefined), call) }
      : undefined;
}

function describeTool(method: NamedMethod): Tool {
  const { desc } = method.served;
  const schemas = createSchemas("request", "#/$defs/");
  const properties = Object.fromEntries(
    desc.input.fields.map((field) => [
      field.jsonName,
      { description: commentOf(fullNameOf(field)), ...schemas.field(field) },
    ]),
  );
  const required = requiredOf(method).map(({ jsonName }) => jsonName);
  return {
    name: toolName(method),
    description: commentOf(fullNameOf(desc)),
    inputSchema: { type: "object", properties, required, $defs: schemas.definitions() },
    annotations: { readOnlyHint: true },
  };
}

/** Describes a resource as a URI template (RFC 6570). */
function describeTemplate(method: NamedMethod): ResourceTemplate {
  const { desc } = method.served;
  const segments = requiredOf(method).map(({ jsonName }) => `/{${jsonName}}`);
  const query = desc.input.fields
    .filter((field) => !isRequired(field) && field.message === undefined)
    .map(({ jsonName, fieldKind }) => (fieldKind === "list" ? `${jsonName}*` : jsonName));
  return {
    uriTemplate: `${scheme}${locationOf(method)}${segments.join("")}${query.length > 0 ? `{?${query.join(",")}}` : ""}`,
    name: method.name,
    description: commentOf(fullNameOf(desc)),
    mimeType,
  };
}
