/**
 * MCP resources that assistants may read: `gatehouse://<area>/<method>`, then a segment for each required parameter,
 * then a query with optional parameters.
 */
import type { DescField } from "@bufbuild/protobuf";
import type { Resource, ResourceTemplate } from "@modelcontextprotocol/sdk/types.js";
import { isRequired } from "../codec/fields.js";
import type { CommentOf } from "../describe/comments.js";
import { splitPath } from "../http/route-table.js";
import { compileRequestBinder } from "../http/request-binder.js";
import { compileRequest, type NamedMethod } from "../json-rpc/named-methods.js";
import type { Call, ServedMethod } from "../service.js";

/** Resource that matches a URI. */
export interface FoundResource {
  readonly served: ServedMethod;
  /** Returns JSON text. Throws what the method throws, and errors for invalid parameters. */
  readonly read: (call: Call) => Promise<string>;
}

export interface ResourceDeps {
  /** Read-only methods. */
  readonly reads: readonly NamedMethod[];
  /** Titles, by name, of methods that are resources although they need no parameters. */
  readonly titles: Readonly<Record<string, string>>;
  readonly commentOf: CommentOf;
}

export interface Resources {
  /** Returns the resources without parameters. */
  list(): Resource[];
  /** Returns the URI templates of the resources with parameters. */
  listTemplates(): ResourceTemplate[];
  /** Returns the resource with this URI; undefined if there is none. */
  find(uri: string): FoundResource | undefined;
}

const scheme = "gatehouse://";
const mimeType = "application/json";

export function createResources({ reads, titles, commentOf }: ResourceDeps): Resources {
  const isTitled = ({ name }: NamedMethod): boolean => Object.hasOwn(titles, name);
  const methods = reads.filter((method) => requiredOf(method).length > 0 || isTitled(method));
  const byLocation = new Map(methods.map((method) => [locationOf(method), compileResource(method)]));

  return {
    list: () =>
      Object.entries(titles).flatMap(([name, title]) => {
        const method = methods.find((candidate) => candidate.name === name);
        return method === undefined ? [] : [{ uri: `${scheme}${locationOf(method)}`, name: title, mimeType }];
      }),
    listTemplates: () => methods.filter((method) => !isTitled(method)).map((method) => describe(method, commentOf)),
    find(uri) {
      const [path, query = ""] = uri.split(/\?(.*)/s, 2) as [string, string?];
      const segments = path.startsWith(scheme) ? splitPath(`/${path.slice(scheme.length)}`) : undefined;
      const [area, method, ...parameters] = segments ?? [];
      return byLocation.get(`${area}/${method}`)?.(parameters, query);
    },
  };
}

/** Returns the location of a method in its URI, such as `storage/getProgram`. */
function locationOf({ name }: NamedMethod): string {
  return name.replace(".", "/");
}

function requiredOf({ served }: NamedMethod): DescField[] {
  return served.desc.input.fields.filter(isRequired);
}

/** Returns the resource for parameters and a query; undefined if the number of parameters is wrong. */
type FindResource = (parameters: readonly string[], query: string) => FoundResource | undefined;

function compileResource(method: NamedMethod): FindResource {
  const { served } = method;
  const names = requiredOf(method).map(({ name }) => name);
  const bind = compileRequestBinder(served.desc.input, names, undefined);
  const run = compileRequest(method);
  return (parameters, query) =>
    parameters.length === names.length
      ? { served, read: async (call) => await run(bind(parameters, query, undefined), call) }
      : undefined;
}

/** Describes a resource as a URI template (RFC 6570). */
function describe(method: NamedMethod, commentOf: CommentOf): ResourceTemplate {
  const { desc } = method.served;
  const segments = requiredOf(method).map(({ jsonName }) => `/{${jsonName}}`);
  const query = desc.input.fields
    .filter((field) => !isRequired(field) && field.message === undefined)
    .map(({ jsonName, fieldKind }) => (fieldKind === "list" ? `${jsonName}*` : jsonName));
  return {
    uriTemplate: `${scheme}${locationOf(method)}${segments.join("")}${query.length > 0 ? `{?${query.join(",")}}` : ""}`,
    name: method.name,
    description: commentOf(`${desc.parent.typeName}.${desc.name}`),
    mimeType,
  };
}
