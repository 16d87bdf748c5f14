/** Errors of a plain HTTP route: the reasons that the contract lists for the rpc, and those of every request. */
import { getOption } from "@bufbuild/protobuf";
import { failures, ReasonSchema } from "../../../gen/gatehouse/errors/v1/errors_pb.js";
import { errorCatalog, type Reason } from "../errors.js";
import { commentOf } from "./comments.js";
import type { JsonSchema } from "./json-schema.js";
import type { HttpRoute } from "../http/http-rule.js";
import type { ServedMethod } from "../service.js";

/** Reasons of all requests: limits of the gate, no capacity for the response, and internal errors. */
const commonReasons: readonly Reason[] = ["RATE_LIMITED", "OVERLOADED", "INTERNAL_ERROR"];
/** Reasons of all requests except probes, which never query the database. */
const nonProbeReasons: readonly Reason[] = ["DATABASE_UNAVAILABLE", "DATABASE_DAMAGED"];
/** Reasons of requests with a body. */
const bodyReasons: readonly Reason[] = ["REQUEST_TIMEOUT", "PAYLOAD_TOO_LARGE"];

const names = new Map(ReasonSchema.values.map(({ number, localName }) => [number, localName as Reason]));

/** Returns the reasons by HTTP status, both in ascending order. */
export function failuresOf(
  { desc, isProbe, identifiesCaller }: ServedMethod,
  route: HttpRoute,
): [status: number, Reason[]][] {
  const reasons = new Set<Reason>([
    ...(desc.input.fields.length > 0 ? (["INVALID_REQUEST"] as const) : []),
    ...getOption(desc, failures).map((number) => names.get(number)!),
    ...(route.body !== undefined ? bodyReasons : []),
    ...commonReasons,
    ...(identifiesCaller ? (["INVALID_SIGNATURE"] as const) : []),
    ...(isProbe ? [] : nonProbeReasons),
  ]);
  const byStatus = new Map<number, Reason[]>();
  for (const reason of Object.keys(errorCatalog) as Reason[]) {
    if (reasons.has(reason)) {
      const status = errorCatalog[reason].httpStatus;
      byStatus.set(status, [...(byStatus.get(status) ?? []), reason]);
    }
  }
  return [...byStatus].sort(([a], [b]) => a - b);
}

export const failureSchema: JsonSchema = {
  description: "The one error body of every route.",
  type: "object",
  required: ["success", "error", "errorCode"],
  properties: {
    success: { const: false },
    error: { type: "string", description: "An error message for people." },
    errorCode: { type: "string", enum: Object.keys(errorCatalog), description: "The reason, for programs." },
    retryAfter: { type: "integer", minimum: 0, description: "Seconds to wait before a retry, an integer." },
  },
};

export const failureReference: JsonSchema = { $ref: "#/components/schemas/Failure" };

export function createFailureResponses() {
  const definitions = new Map<string, object>();
  const define = (name: string, description: string): object => {
    definitions.set(name, { description, content: { "application/json": { schema: failureReference } } });
    return { $ref: `#/components/responses/${name}` };
  };
  return {
    /** Default response for statuses that an operation does not list. */
    any: define("Failure", "The request was rejected, or failed."),
    /** Returns the response of a status. A response with an example is inlined; others are shared definitions. */
    describe(reasons: readonly Reason[], example: unknown): object {
      const description = reasons
        .map((reason) => [`\`${reason}\``, commentOf(`gatehouse.errors.v1.Reason.REASON_${reason}`)])
        .map((parts) => parts.filter((part) => part !== "").join(": "))
        .join("\n\n");
      return example === undefined
        ? define(reasons.join("."), description)
        : { description, content: { "application/json": { schema: failureReference, example } } };
    },
    definitions: (): Readonly<Record<string, object>> => Object.fromEntries(definitions),
  };
}
