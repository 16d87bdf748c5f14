/** How a plain route can fail: for reasons of its own, which the contract names, and for those of every request. */
import { getOption } from "@bufbuild/protobuf";
import { failures, ReasonSchema } from "../../../gen/gatehouse/errors/v1/errors_pb.js";
import { catalogue, type Reason } from "../errors.js";
import type { HttpRoute } from "../http/http-rule.js";
import type { ServedMethod } from "../service.js";

/** What the gate and the reading of requests refuse, and what may happen to anything. */
const ofAnyRequest: readonly Reason[] = ["INVALID_SIGNATURE", "INTERNAL_ERROR"];
/** Probes are let in always, and never ask the database. */
const ofAnyButProbes: readonly Reason[] = ["RATE_LIMITED", "OVERLOADED", "DATABASE_UNAVAILABLE"];
const ofBodies: readonly Reason[] = ["REQUEST_TIMEOUT", "PAYLOAD_TOO_LARGE"];

const names = new Map(ReasonSchema.values.map(({ number, localName }) => [number, localName as Reason]));

/** The reasons by their HTTP status, both in ascending order. */
export function failuresOf({ desc, isProbe }: ServedMethod, route: HttpRoute): [status: number, Reason[]][] {
  const reasons = new Set<Reason>([
    ...(desc.input.fields.length > 0 ? (["INVALID_REQUEST"] as const) : []),
    ...getOption(desc, failures).map((number) => names.get(number)!),
    ...(route.hasBody ? ofBodies : []),
    ...ofAnyRequest,
    ...(isProbe ? [] : ofAnyButProbes),
  ]);
  const byStatus = new Map<number, Reason[]>();
  for (const reason of Object.keys(catalogue) as Reason[]) {
    if (reasons.has(reason)) {
      const status = catalogue[reason].httpStatus;
      byStatus.set(status, [...(byStatus.get(status) ?? []), reason]);
    }
  }
  return [...byStatus].sort(([a], [b]) => a - b);
}
