/** Conversion of errors to the single error class of the client. */
import { getOption, hasOption } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { kind, ReasonSchema } from "../../gen/gatehouse/errors/v1/errors_pb.js";
import { ErrorInfoSchema, RetryInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { type FailureReason, GatehouseError, type NodeReason } from "./gatehouse-error.js";

/** Converts any error of a call to a GatehouseError. */
export function toGatehouseError(thrown: unknown): GatehouseError {
  if (thrown instanceof GatehouseError) {
    return thrown;
  }
  const error = ConnectError.from(thrown);
  return new GatehouseError(error.rawMessage, reasonOf(error), {
    code: Code[error.code] as keyof typeof Code,
    retryAfterMs: retryAfterMsOf(error),
    fromNode: true,
    cause: thrown,
  });
}

/** Returns the same error with the hash of a transaction. */
export function withTransactionHash(error: GatehouseError, transactionHash: string): GatehouseError {
  const { message, reason, code, retryAfterMs, fromNode, cause } = error;
  return new GatehouseError(message, reason, { code, retryAfterMs, fromNode, transactionHash, cause: cause ?? error });
}

/** Returns true if the same call may succeed later. */
export function isTransient({ reason }: GatehouseError): boolean {
  return reason === "UNREACHABLE" || transientReasons.has(reason);
}

/** Reasons that the API marks as transient, except DEADLINE_EXCEEDED: the caller's deadline has passed. */
const transientReasons: ReadonlySet<FailureReason> = new Set(
  ReasonSchema.values
    .filter((value) => hasOption(value, kind) && getOption(value, kind).transient)
    .map(({ localName }) => localName as NodeReason)
    .filter((name) => name !== "DEADLINE_EXCEEDED"),
);

/** Returns the gRPC code of a reason of the API. */
export function codeOf(reason: NodeReason): keyof typeof Code | undefined {
  const value = ReasonSchema.values.find(({ localName }) => localName === reason);
  return value && (Code[getOption(value, kind).grpcCode] as keyof typeof Code | undefined);
}

function reasonOf(error: ConnectError): FailureReason {
  const info = error.findDetails(ErrorInfoSchema).find(({ domain }) => domain === "gatehouse");
  if (info !== undefined) {
    const isKnown = ReasonSchema.values.some(({ localName }) => localName === info.reason);
    return isKnown ? (info.reason as NodeReason) : "UNSPECIFIED";
  }
  switch (error.code) {
    case Code.DeadlineExceeded:
      return "DEADLINE_EXCEEDED";
    case Code.Unavailable:
      return "UNREACHABLE";
    default:
      return "UNSPECIFIED";
  }
}

/**
 * Returns the wait in milliseconds from the error details of a node, or from the `retry-after` header of a proxy
 * (seconds or a date).
 */
function retryAfterMsOf(error: ConnectError): number | undefined {
  const delay = error.findDetails(RetryInfoSchema)[0]?.retryDelay;
  if (delay !== undefined) {
    return Number(delay.seconds) * 1000 + Math.ceil(delay.nanos / 1e6);
  }
  const header = error.metadata.get("retry-after");
  if (header === null) {
    return undefined;
  }
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}
