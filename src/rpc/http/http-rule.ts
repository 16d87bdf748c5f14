/** What `google.api.http` says of an rpc. */
import { type DescField, type DescMethod, getOption, hasOption } from "@bufbuild/protobuf";
import { http } from "../../../gen/google/api/annotations_pb.js";
import type { HttpRule } from "../../../gen/google/api/http_pb.js";

/** A plain HTTP route. */
export interface HttpRoute {
  /** The HTTP method, in upper case. */
  readonly method: string;
  /** The path template, such as `/storage-program/{storage_address}`. */
  readonly template: string;
  /** The field of the response that is the whole body; undefined where the response is. */
  readonly responseField: DescField | undefined;
  /** What a JSON body fills: the request as a whole, or one field of it; undefined where there is no body. */
  readonly body: "*" | DescField | undefined;
  /** The answer is a stream of messages. */
  readonly isStream: boolean;
}

/**
 * The routes of an rpc: that of its rule, and those of its additional bindings; none where it has no rule.
 *
 * @throws Error that names the rpc when its rule says something that is not supported.
 */
export function readHttpRoutes(desc: DescMethod): HttpRoute[] {
  if (!hasOption(desc, http)) {
    return [];
  }
  if (desc.methodKind !== "unary" && desc.methodKind !== "server_streaming") {
    throw new Error(`${nameOf(desc)}: an rpc whose requests are a stream has no plain route.`);
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
    throw new Error(`${nameOf(desc)}: a plain route has one HTTP method, in upper case.`);
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
    throw new Error(`${nameOf(desc)}: ${option} "${name}" is no field of ${desc[side].typeName}.`);
  }
  return field;
}

function nameOf({ parent, name }: DescMethod): string {
  return `${parent.typeName}.${name}`;
}
