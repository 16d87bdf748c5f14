/** Why a call failed, as the one class that is thrown. */
import { getOption, hasOption } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { kind, ReasonSchema } from "../../gen/gatehouse/errors/v1/errors_pb.js";
import { ErrorInfoSchema, RetryInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { type FailureReason, GatehouseError, type NodeReason } from "./gatehouse-error.js";

/** Whatever a call threw, as the one class. */
export function toGatehouseError(thrown: unknown): GatehouseError {
  if (thrown instanceof GatehouseError) {
    return thrown;
  }
  const error = ConnectError.from(thrown);
  return new GatehouseError(error.rawMessage, reasonOf(error), {
    code: Code[error.code] as keyof typeof Code,
    retryAfterMs: retryAfterMsOf(error),
    cause: thrown,
  });
}

/** The same failure, of this transaction. */
export function ofTransaction(error: GatehouseError, transactionHash: string): GatehouseError {
  const { message, reason, code, retryAfterMs, cause } = error;
  return new GatehouseError(message, reason, { code, retryAfterMs, transactionHash, cause: cause ?? error });
}

/** Whether the same call may succeed later. */
export function isTransient({ reason }: GatehouseError): boolean {
  return reason === "UNREACHABLE" || transientReasons.has(reason);
}

/** The contract says it; but the time that the caller gave does not come back. */
const transientReasons: ReadonlySet<FailureReason> = new Set(
  ReasonSchema.values
    .filter((value) => hasOption(value, kind) && getOption(value, kind).transient)
    .map(({ localName }) => localName as NodeReason)
    .filter((name) => name !== "DEADLINE_EXCEEDED"),
);

/** The code that a reason of the contract travels with. */
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

/** From the details of a node, or from the header that proxies send: seconds, or a date. */
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
