/** What `google.api.http` says of an rpc, in the part of its grammar that this interface needs. */
import { type DescField, type DescMethod, getOption, hasOption } from "@bufbuild/protobuf";
import { http } from "../../../gen/google/api/annotations_pb.js";

/** A plain HTTP route. */
export interface HttpRoute {
  /** The HTTP method, in upper case. */
  readonly method: string;
  /** The path template, such as `/storage-program/{storage_address}`. */
  readonly template: string;
  /** The field of the response that is the whole body; undefined where the response is. */
  readonly responseField: DescField | undefined;
  /** The whole request is a JSON body. */
  readonly hasBody: boolean;
  /** The answer is a stream of messages. */
  readonly isStream: boolean;
}

/**
 * The route of an rpc; undefined where it has none.
 *
 * @throws Error that names the rpc when its rule says something that is not supported.
 */
export function readHttpRule(desc: DescMethod): HttpRoute | undefined {
  if (!hasOption(desc, http)) {
    return undefined;
  }
  const { pattern, body, responseBody, additionalBindings } = getOption(desc, http);
  const name = `${desc.parent.typeName}.${desc.name}`;
  const isStream = desc.methodKind === "server_streaming" && pattern.case === "get";
  if (
    !(desc.methodKind === "unary" || isStream) ||
    pattern.case === undefined ||
    pattern.case === "custom" ||
    additionalBindings.length > 0
  ) {
    throw new Error(
      `${name}: a plain route is a unary rpc with one get, put, post, delete or patch, or one whose answers are a stream ` +
        "with a get.",
    );
  }
  if (body !== "" && body !== "*") {
    throw new Error(`${name}: the body of a plain route is "*" or nothing.`);
  }
  const responseField = desc.output.fields.find((field) => field.name === responseBody);
  if (responseBody !== "" && responseField === undefined) {
    throw new Error(`${name}: response_body "${responseBody}" is no field of ${desc.output.typeName}.`);
  }
  const method = pattern.case.toUpperCase();
  return { method, template: pattern.value, responseField, hasBody: body === "*", isStream };
}
