/**
 * Errors of requests. In every protocol an error leaves the node as a reason and a message, without further internals.
 * The contract gatehouse/errors/v1/errors.proto defines the reasons and their encoding in each protocol.
 */
import { getOption } from "@bufbuild/protobuf";
import {
  type FailureKind,
  kind as kindOption,
  type Reason as ReasonValue,
  ReasonSchema,
} from "../../gen/gatehouse/errors/v1/errors_pb.js";
import {
  databaseErrorKindOf,
  isDatabaseBusy,
  isDatabaseCorruption,
  isDatabaseError,
} from "../base/errors/database-error-kind.js";

/** Reason as clients see it: `errorCode` in JSON, `reason` of the gRPC error detail. */
export type Reason = Exclude<keyof typeof ReasonValue, "UNSPECIFIED">;

/** Outcome of a request: OK, the reason of its error, or CANCELLED if the client disconnected before a response. */
export type Outcome = Reason | "OK" | "CANCELLED";

/** Every reason of the contract, in its order, with its status codes and other options. */
export const errorCatalog = Object.fromEntries(
  ReasonSchema.values
    .filter(({ number }) => number !== 0)
    .map((value) => [value.localName, getOption(value, kindOption)]),
) as Readonly<Record<Reason, FailureKind>>;

/** Error that is reported to the client: a reason, and one sentence for people as the message. */
export class RpcError extends Error {
  override readonly name = "Failure";

  constructor(
    readonly reason: Reason,
    message: string,
    /** Delay in seconds, an integer, after which a retry makes sense; undefined if the reason has no such time. */
    readonly retryAfterS?: number,
    /** Headers that HTTP responses add besides Retry-After: a flat list of names and values. */
    readonly headers: readonly string[] = [],
    readonly kind: FailureKind = errorCatalog[reason],
  ) {
    super(message);
  }
}

/**
 * Converts any thrown value to the error that the client may see. An {@link RpcError} stays as it is, database errors
 * map to their reasons, and everything else becomes an internal error.
 */
export function toRpcError(thrown: unknown): RpcError {
  if (thrown instanceof RpcError) {
    return thrown;
  }
  if (isDatabaseBusy(thrown)) {
    return new RpcError("OVERLOADED", "The node's database is busy; try again in 5 s.", 5);
  }
  if (isDatabaseCorruption(thrown)) {
    return new RpcError("DATABASE_DAMAGED", "This record is corrupt on this node; use another node.");
  }
  if (databaseErrorKindOf(thrown) === "unreadable") {
    return new RpcError("DATABASE_UNAVAILABLE", "The node's disk cannot be read; try again in 5 s.", 5);
  }
  return isDatabaseError(thrown)
    ? new RpcError("DATABASE_UNAVAILABLE", "The node's database does not respond; try again in 5 s.", 5)
    : new RpcError("INTERNAL_ERROR", "Internal error");
}
