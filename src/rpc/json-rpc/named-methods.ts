/** Rpcs by the names that clients without generated code use, such as `storage.getProgram`. */
import type { DescField, DescService } from "@bufbuild/protobuf";
import { isJsonObject, type Json } from "../../base/text/parse-json.js";
import { RpcError } from "../errors.js";
import { readHttpRoutes } from "../http/http-rule.js";
import { responseEncoder } from "../codec/json-encoder.js";
import { isRequired } from "../codec/fields.js";
import { readJsonRequest } from "../codec/json-request.js";
import type { Call, ServedMethod, ServedService } from "../service.js";

export interface NamedMethod {
  /** Name of the method: `<area>.<method>`. */
  readonly name: string;
  readonly served: ServedMethod;
  /** Response field that is the entire result, as over plain HTTP; undefined if the result is the response message. */
  readonly responseField: DescField | undefined;
  /** True if the rpc only reads: its plain HTTP method is GET. */
  readonly isRead: boolean;
}

/** Returns the area of a service: `storage` for `gatehouse.storage.v1.StorageService`. */
export function areaOf({ typeName }: DescService): string {
  return typeName.split(".").at(-3) ?? typeName;
}

/** Names the unary rpcs of the node's own services, in their order. */
export function nameMethods(services: readonly ServedService[]): NamedMethod[] {
  return services
    .filter(({ desc }) => desc.typeName.startsWith("gatehouse."))
    .flatMap(({ desc, methods }) =>
      methods
        .filter((served) => served.desc.methodKind === "unary")
        .map((served) => {
          const [route] = readHttpRoutes(served.desc);
          const name = `${areaOf(desc)}.${served.desc.localName}`;
          return { name, served, responseField: route?.responseField, isRead: route?.method === "GET" };
        }),
    );
}

/** Compiles a method that takes a decoded request message, and returns the JSON text of the response. */
export function compileRequest({ served, responseField }: NamedMethod) {
  const encode = responseEncoder(served.desc.output, responseField);
  return async (request: object, call: Call): Promise<string> =>
    encode(await Promise.resolve(served.invoke(request, call)));
}

/**
 * Compiles a method for clients without generated code: it takes named or positional parameters, and returns the JSON
 * text of the response. Throws what the method throws.
 */
export function compileMethod(method: NamedMethod): (params: unknown, call: Call) => Promise<string> {
  const { input } = method.served.desc;
  const run = compileRequest(method);
  // Methods detect missing messages themselves, but cannot distinguish a missing scalar from an empty text or a zero.
  const required = input.fields.filter((field) => isRequired(field) && field.message === undefined);
  return async (params, call) => {
    const named = nameParameters(params);
    const missing = required.find((field) => !isPresent(named, field));
    if (missing !== undefined) {
      throw new RpcError("INVALID_REQUEST", `${missing.jsonName} is required.`);
    }
    return await run(readJsonRequest(input, named), call);
  };

  /** Converts positional parameters to named ones, in the order of the request's fields. */
  function nameParameters(params: unknown): Json {
    if (!Array.isArray(params)) {
      return (params ?? {}) as Json;
    }
    if (params.length > input.fields.length) {
      throw new RpcError(
        "INVALID_REQUEST",
        `The method accepts at most ${input.fields.length} parameters, not ${params.length}.`,
      );
    }
    return Object.fromEntries(params.map((value, i) => [input.fields[i]!.jsonName, value as Json]));
  }
}

/**
 * Returns true if a parameter is present under either name; null counts as absent. Parameters that are no object are
 * rejected later.
 */
function isPresent(params: Json, { jsonName, name }: DescField): boolean {
  if (!isJsonObject(params)) {
    return true;
  }
  return [jsonName, name].some((key) => Object.hasOwn(params, key) && (params[key] ?? null) !== null);
}
