/** The rpcs by the names that callers without generated code use: `storage.getProgram`. */
import type { DescField, DescService, JsonValue } from "@bufbuild/protobuf";
import { RpcError } from "../errors.js";
import { readHttpRoutes } from "../http/http-rule.js";
import { jsonEncoder, jsonFieldEncoder } from "../codec/json-encoder.js";
import { isRequired } from "../codec/presence.js";
import { readJsonRequest } from "../codec/json-request.js";
import type { Call, ServedMethod, ServedService } from "../service.js";

/** An rpc that takes one message and gives one. */
export interface NamedMethod {
  /** `<area>.<method>`. */
  readonly name: string;
  readonly served: ServedMethod;
  /** The field of the response that is the whole answer, as it is over plain HTTP; undefined where the response is. */
  readonly responseField: DescField | undefined;
  /** It only reads: over plain HTTP it is a GET. */
  readonly isRead: boolean;
}

/** The area of a service: `storage` of `gatehouse.storage.v1.StorageService`. */
export function areaOf({ typeName }: DescService): string {
  return typeName.split(".").at(-3) ?? typeName;
}

/** Names the unary rpcs of our own services, in their order. */
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

/** Takes a request message and gives the JSON text of the answer. Throws what the method throws. */
export type AnswerRequest = (request: object, call: Call) => Promise<string>;

/** Takes parameters, named or by position, and gives the JSON text of the answer. Throws what the method throws. */
export type RunMethod = (params: unknown, call: Call) => Promise<string>;

/** Compiles what becomes of a request, however it was read. */
export function compileAnswer({ served, responseField }: NamedMethod): AnswerRequest {
  const encode = responseField === undefined ? jsonEncoder(served.desc.output) : jsonFieldEncoder(responseField);
  return async (request, call) => encode(await Promise.resolve(served.invoke(request, call)));
}

/** Compiles a method for callers without generated code. */
export function compileMethod(method: NamedMethod): RunMethod {
  const { input } = method.served.desc;
  const answer = compileAnswer(method);
  // A missing message its method sees by itself; an empty text or a zero it would take for what was asked.
  const required = input.fields.filter((field) => isRequired(field) && field.message === undefined);
  return async (params, call) => {
    const named = nameParameters(params);
    const missing = required.find((field) => !isGiven(named, field));
    if (missing !== undefined) {
      throw new RpcError("INVALID_REQUEST", `${missing.jsonName} is required.`);
    }
    return await answer(readJsonRequest(input, named), call);
  };

  /** Parameters by position are the fields of the request in their order. */
  function nameParameters(params: unknown): JsonValue {
    if (!Array.isArray(params)) {
      return (params ?? {}) as JsonValue;
    }
    if (params.length > input.fields.length) {
      throw new RpcError("INVALID_REQUEST", `There are more parameters than the ${input.fields.length} that it takes.`);
    }
    return Object.fromEntries(params.map((value, i) => [input.fields[i]!.jsonName, value as JsonValue]));
  }
}

/** A parameter goes by either name; null says as little as nothing. What is no object at all is refused elsewhere. */
function isGiven(params: JsonValue, { jsonName, name }: DescField): boolean {
  if (typeof params !== "object" || params === null || Array.isArray(params)) {
    return true;
  }
  return [jsonName, name].some((key) => Object.hasOwn(params, key) && (params[key] ?? null) !== null);
}
