/**
 * How requests fail. A failure leaves the node as a reason and a sentence, whatever the protocol; nothing else about it
 * does. The reasons, and how each of them travels, are in the contract: gatehouse/errors/v1/errors.proto.
 */
import { getOption } from "@bufbuild/protobuf";
import {
  type FailureKind,
  kind as kindOption,
  type Reason as ReasonValue,
  ReasonSchema,
} from "../../gen/gatehouse/errors/v1/errors_pb.js";
import { isDatabaseBusy, isDatabaseCorruption, isDatabaseError } from "../base/errors/database-error-kind.js";

/** A reason as it travels: `errorCode` in JSON, `reason` of the gRPC error detail. */
export type Reason = Exclude<keyof typeof ReasonValue, "UNSPECIFIED">;

/** How a request ended: well, or why not; cancelled, where the caller went before there was an answer. */
export type Outcome = Reason | "OK" | "CANCELLED";

/** Every reason of the contract, in its order, with what follows from it. */
export const catalogue = Object.fromEntries(
  ReasonSchema.values
    .filter(({ number }) => number !== 0)
    .map((value) => [value.localName, getOption(value, kindOption)]),
) as Readonly<Record<Reason, FailureKind>>;

/** A failure that the caller is told about: a reason, and one sentence for a person as the message. */
export class RpcError extends Error {
  override readonly name = "Failure";

  constructor(
    readonly reason: Reason,
    message: string,
    /** Whole seconds after which trying again makes sense, where the reason has such a time. */
    readonly retryAfterS?: number,
    /** Headers that HTTP responses get with it, beside Retry-After: a flat list of names and values. */
    readonly headers: readonly string[] = [],
    readonly kind: FailureKind = catalogue[reason],
  ) {
    super(message);
  }
}

/**
 * Whatever was thrown, as what the caller may know of it: a {@link RpcError} as it is, trouble with the database as such,
 * anything else as an internal error.
 */
export function toRpcError(thrown: unknown): RpcError {
  if (thrown instanceof RpcError) {
    return thrown;
  }
  if (isDatabaseBusy(thrown)) {
    return new RpcError("OVERLOADED", "The node's database is busy; try again in 5 s.", 5);
  }
  if (isDatabaseCorruption(thrown)) {
    return new RpcError("DATABASE_DAMAGED", "What the node's database holds here is damaged; ask another node.");
  }
  return isDatabaseError(thrown)
    ? new RpcError("DATABASE_UNAVAILABLE", "The node's database does not answer; try again in 5 s.", 5)
    : new RpcError("INTERNAL_ERROR", "Internal error");
}
