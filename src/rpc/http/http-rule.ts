/** Plain HTTP routes of an rpc, from its `google.api.http` option. */
import { type DescField, type DescMethod, getOption, hasOption } from "@bufbuild/protobuf";
import { http } from "../../../gen/google/api/annotations_pb.js";
import type { HttpRule } from "../../../gen/google/api/http_pb.js";
import { fullNameOf } from "../service.js";

export interface HttpRoute {
  readonly method: string;
  /** Path template, such as `/storage-program/{storage_address}`. */
  readonly template: string;
  /** Response field that is the entire body; undefined if the body is the response message. */
  readonly responseField: DescField | undefined;
  /** Target of a JSON body: the request message (`*`) or one of its fields; undefined without a body. */
  readonly body: "*" | DescField | undefined;
  readonly isStream: boolean;
}

/**
 * Returns the routes of an rpc: its rule and the additional bindings. Empty without a rule.
 *
 * @throws Error that names the rpc if its rule is not supported.
 */
export function readHttpRoutes(desc: DescMethod): HttpRoute[] {
  if (!hasOption(desc, http)) {
    return [];
  }
  if (desc.methodKind !== "unary" && desc.methodKind !== "server_streaming") {
    throw new Error(`${fullNameOf(desc)}: an rpc whose requests are a stream has no plain route.`);
  }
  const rule = getOption(desc, http);
  return [rule, ...rule.additionalBindings].map((binding) => readRoute(desc, binding));
}

function readRoute(desc: DescMethod, { pattern, body, responseBody }: HttpRule): HttpRoute {
  const [method, template] =
    pattern.case === "custom"
      ? [pattern.value.kind, pattern.value.path]
      : [pattern.case?.toUpperCase() ?? "", pattern.value ?? ""];
  if (!/^[A-Z]+$/.test(method)) {
    throw new Error(`${fullNameOf(desc)}: a plain route has one HTTP method, in upper case.`);
  }
  return {
    ...{ method, template },
    body: body === "" ? undefined : body === "*" ? body : fieldOf(desc, "input", "body", body),
    responseField: responseBody === "" ? undefined : fieldOf(desc, "output", "response_body", responseBody),
    isStream: desc.methodKind === "server_streaming",
  };
}

function fieldOf(desc: DescMethod, side: "input" | "output", option: string, name: string): DescField {
  const field = desc[side].fields.find((candidate) => candidate.name === name);
  if (field === undefined) {
    throw new Error(`${fullNameOf(desc)}: ${option} "${name}" is not a field of ${desc[side].typeName}.`);
  }
  return field;
}

/** Returns the names of a template's fields, in order. Accepts the full grammar of google.api.http. */
export function pathFieldsOf(template: string): string[] {
  return [...template.matchAll(/\{([^{}=]+)/g)].map(([, name]) => name!);
}
