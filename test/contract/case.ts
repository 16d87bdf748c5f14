/** Contract cases: one request each, over plain HTTP and as a message. */
import { type DescField, type DescMethodUnary, getOption, hasOption, ScalarType } from "@bufbuild/protobuf";
import { http } from "../../gen/google/api/annotations_pb.js";
import { latestBlock } from "../../src/base/latest-block.js";
import { callerOf } from "../helpers/process/caller.js";
import { contractServices } from "../helpers/process/contract-files.js";
import { jsonPost, type PlainRequest } from "../helpers/wire/plain-client.js";
import { withStablePending, people } from "./data.js";

/** Signer of a request; undefined for an anonymous request. */
export type CallerName = "owner" | "friend" | "member" | "enemy";

/** Nodes that cases run against. */
export type NodeName = "member" | "newcomer";

/** Request of the contract. */
export interface ContractCase {
  readonly title: string;
  /** `member` has peers, a genesis and data; `newcomer` has nothing, so it is dormant. Both have TLSNOTARY_ENABLED. */
  readonly node: NodeName;
  readonly method: DescMethodUnary;
  /** Request as a message; undefined if no message can express the plain request, such as `limit=abc`. */
  readonly request: object | undefined;
  readonly path: string;
  readonly httpMethod: "GET" | "POST";
  readonly body: string | undefined;
  readonly caller: CallerName | undefined;
}

/** Routes of the unary rpcs, with their paths as patterns. Of the routes that match a path, the first is the most literal. */
const routes = (await contractServices())
  .flatMap(({ methods }) => methods.filter((method): method is DescMethodUnary => method.methodKind === "unary"))
  .filter((method) => hasOption(method, http))
  .map((method) => ({ method, ...getOption(method, http) }))
  .map(({ method, pattern }) => ({
    ...{ method, httpMethod: pattern.case?.toUpperCase() },
    names: [...String(pattern.value).matchAll(/\{(\w+)\}/g)].map(([, name]) => name),
    path: new RegExp(`^${String(pattern.value).replaceAll(/\{\w+\}/g, "([^/]*)")}$`),
  }))
  .sort((a, b) => a.names.length - b.names.length);

/**
 * Declares a case of the rpc at a path.
 *
 * @param more.request by default what the path says; null if no message can express it.
 */
export function contractCase(
  path: string,
  title: string,
  more: {
    readonly node?: NodeName;
    readonly post?: string;
    readonly caller?: CallerName | undefined;
    readonly request?: object | null;
  } = {},
): ContractCase {
  const { node = "member", post: body, caller } = more;
  const httpMethod = body === undefined ? "GET" : "POST";
  const [pathname = "", query] = path.split("?");
  const route = routes.find((each) => each.httpMethod === httpMethod && each.path.test(pathname));
  if (route === undefined) {
    throw new Error(`No route of the contract matches ${httpMethod} ${pathname} (case "${title}").`);
  }
  const request = more.request === undefined ? requestOf(route, pathname, query) : more.request;
  return { title, node, method: route.method, path, body, caller, request: request ?? undefined, httpMethod };
}

/** Reads a request from its path, by the route of its method. */
function requestOf({ method, names, path }: (typeof routes)[number], pathname: string, query?: string): object {
  const values = path.exec(pathname)!.slice(1);
  const request: Record<string, unknown> = {};
  names.forEach((name, i) => {
    const field = method.input.fields.find((each) => each.name === name)!;
    request[field.localName] = valueOf(field, decodeURIComponent(values[i]!));
  });
  const given = new URLSearchParams(query);
  for (const field of method.input.fields.filter(({ jsonName }) => given.has(jsonName))) {
    const all = given.getAll(field.jsonName).map((text) => valueOf(field, text));
    request[field.localName] = field.fieldKind === "list" ? all : all[0];
  }
  return request;
}

function valueOf(field: DescField, text: string): unknown {
  switch (field.scalar) {
    case ScalarType.STRING:
      return text;
    case ScalarType.BOOL:
      return text !== "false";
    case ScalarType.UINT64:
      return text === "latest" ? latestBlock : BigInt(text);
    default:
      return Number(text);
  }
}

/** Returns a case as one line. */
export function describe({ node, httpMethod, path, title }: ContractCase): string {
  return `${httpMethod} ${mask(path)}: ${title}${node === "member" ? "" : ", on a newcomer"}`;
}

/** Returns the identity headers of the signer. */
export function headersOf({ caller }: ContractCase): Record<string, string> {
  return caller === undefined ? {} : callerOf(people[caller]).headers();
}

/** Returns the plain HTTP request, signed now. */
export function plainRequestOf(contractCase: ContractCase): PlainRequest {
  const headers = headersOf(contractCase);
  return contractCase.body === undefined ? { headers } : jsonPost(contractCase.body, headers);
}

/** Replaces values that differ between runs by placeholders. Other tests check their types. */
export function mask(text: string): string {
  return (
    withStablePending(text)
      .replace(/"(time|since|timestamp)":1[789]\d{11}\b/g, '"$1":"<ms>"')
      .replace(/"(uptime_s|heartbeat_age_s)":\d+(\.\d+)?/g, '"$1":"<s>"')
      .replace(/"(port|actual)":\d+/g, '"$1":"<port>"')
      // The number of worker processes is not part of the contract.
      .replace(/,"extra":\{"workers":\{[^}]*\}\}/g, "")
      .replace(/http:\/\/127\.0\.0\.1:\d{4,}/g, "http://127.0.0.1:<port>")
  );
}
