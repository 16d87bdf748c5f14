/** Why a call failed: one class, with the reason of the contract or one of the client's own. */
import { getOption, hasOption } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { kind, type Reason, ReasonSchema } from "../../gen/gatehouse/errors/v1/errors_pb.js";
import { ErrorInfoSchema, RetryInfoSchema } from "../../gen/google/rpc/error_details_pb.js";

/**
 * Why the node refuses, as the contract lists it (docs/errors.md of the node). UNSPECIFIED: it says nothing of it, or
 * something that is newer than this client.
 */
export type NodeReason = keyof typeof Reason;

/**
 * Why the client has no answer of a node:
 * - UNREACHABLE: nobody answers at the address, the connection was lost, or a proxy answers in the node's place;
 * - REJECTED: the transaction was turned away when a block was made; the message says why;
 * - UNPROVED: the client believes what is proved alone, and the answer is not, or could not be (ProofError says more);
 * - CLOSED: the client was closed before.
 */
export type ClientReason = "UNREACHABLE" | "REJECTED" | "UNPROVED" | "CLOSED";

/** Why something failed. */
export type FailureReason = NodeReason | ClientReason;

/** What is known of a failure. */
export interface FailureFacts {
  readonly code?: keyof typeof Code | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly transactionHash?: string | undefined;
  readonly cause?: unknown;
}

/** A failure. Its message is a sentence for a person: the node's own, where it has answered. */
export class GatehouseError extends Error {
  override readonly name: string = "GatehouseError";
  /** What a program decides by. */
  readonly reason: FailureReason;
  /** Code of gRPC and Connect; undefined where no call failed. */
  readonly code: keyof typeof Code | undefined;
  /** How long the node asks to wait before the same is tried again; undefined where it asks for nothing. */
  readonly retryAfterMs: number | undefined;
  /** The transaction that was handed in, or waited for: whoever got no answer can look for it by this. */
  readonly transactionHash: string | undefined;

  constructor(message: string, reason: FailureReason, facts: FailureFacts = {}) {
    super(message, "cause" in facts ? { cause: facts.cause } : undefined);
    this.reason = reason;
    this.code = facts.code;
    this.retryAfterMs = facts.retryAfterMs;
    this.transactionHash = facts.transactionHash;
  }
}

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
