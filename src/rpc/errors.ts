/**
 * The catalogue of failures: every reason that a caller can be given, with the gRPC code and the HTTP status that
 * carry it. A failure leaves the node as a reason and a sentence, whatever the protocol; nothing else about it does.
 */
import { isDatabaseTrouble } from "../base/database-trouble.js";

/** The gRPC status codes that the catalogue uses, by number as they travel. */
export const GrpcCode = {
  InvalidArgument: 3,
  DeadlineExceeded: 4,
  NotFound: 5,
  AlreadyExists: 6,
  PermissionDenied: 7,
  ResourceExhausted: 8,
  FailedPrecondition: 9,
  OutOfRange: 11,
  Unimplemented: 12,
  Internal: 13,
  Unavailable: 14,
  Unauthenticated: 16,
} as const;

/** How one reason travels. */
export interface FailureKind {
  readonly grpcCode: number;
  readonly httpStatus: number;
}

const kind = (grpcCode: number, httpStatus: number): FailureKind => ({ grpcCode, httpStatus });

/** Reason (`errorCode` in JSON, `reason` of the gRPC error detail) to how it travels. */
export const catalogue = {
  INVALID_REQUEST: kind(GrpcCode.InvalidArgument, 400),
  INVALID_FIELD_TYPE: kind(GrpcCode.FailedPrecondition, 400),
  INDEX_OUT_OF_BOUNDS: kind(GrpcCode.OutOfRange, 400),
  INVALID_ATTESTATION: kind(GrpcCode.InvalidArgument, 400),
  INVALID_PROOF: kind(GrpcCode.InvalidArgument, 400),
  INVALID_TOKEN: kind(GrpcCode.Unauthenticated, 401),
  INVALID_SIGNATURE: kind(GrpcCode.Unauthenticated, 401),
  PERMISSION_DENIED: kind(GrpcCode.PermissionDenied, 403),
  NOT_FOUND: kind(GrpcCode.NotFound, 404),
  FIELD_NOT_FOUND: kind(GrpcCode.NotFound, 404),
  METHOD_NOT_ALLOWED: kind(GrpcCode.Unimplemented, 405),
  ALREADY_EXISTS: kind(GrpcCode.AlreadyExists, 409),
  REQUEST_TIMEOUT: kind(GrpcCode.DeadlineExceeded, 408),
  UNSUPPORTED_MEDIA_TYPE: kind(GrpcCode.InvalidArgument, 415),
  PAYLOAD_TOO_LARGE: kind(GrpcCode.ResourceExhausted, 413),
  HEADERS_TOO_LARGE: kind(GrpcCode.ResourceExhausted, 431),
  RATE_LIMITED: kind(GrpcCode.ResourceExhausted, 429),
  INTERNAL_ERROR: kind(GrpcCode.Internal, 500),
  STATE_NOT_READY: kind(GrpcCode.Unavailable, 503),
  RELAY_UNAVAILABLE: kind(GrpcCode.Unavailable, 503),
  VERIFIER_NOT_RUNNING: kind(GrpcCode.Unavailable, 503),
  BUSY: kind(GrpcCode.Unavailable, 503),
  OVERLOADED: kind(GrpcCode.Unavailable, 503),
  DATABASE_UNAVAILABLE: kind(GrpcCode.Unavailable, 503),
} as const satisfies Record<string, FailureKind>;

/** A reason of the catalogue. */
export type Reason = keyof typeof catalogue;

/** A failure that the caller is told about: a reason, and one sentence for a person as the message. */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly kind: FailureKind;

  constructor(
    readonly reason: Reason,
    message: string,
    /** Whole seconds after which trying again makes sense, where the reason has such a time. */
    readonly retryAfterS?: number,
    /** Headers that HTTP responses get with it, beside Retry-After: a flat list of names and values. */
    readonly headers: readonly string[] = [],
  ) {
    super(message);
    this.kind = catalogue[reason];
  }
}

/**
 * Whatever was thrown, as what the caller may know of it: a {@link Failure} as it is, trouble with the database as such,
 * anything else as an internal error.
 */
export function toFailure(thrown: unknown): Failure {
  if (thrown instanceof Failure) {
    return thrown;
  }
  return isDatabaseTrouble(thrown)
    ? new Failure("DATABASE_UNAVAILABLE", "The node's database does not answer; try again in 5 s.", 5)
    : new Failure("INTERNAL_ERROR", "Internal error");
}
