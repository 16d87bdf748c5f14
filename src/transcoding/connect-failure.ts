/** Connect errors as errors of a plain HTTP route. */
import { create } from "@bufbuild/protobuf";
import { Code, type ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { FailureKindSchema } from "../../gen/gatehouse/errors/v1/errors_pb.js";
import { RpcError, type Reason } from "../rpc/errors.js";

/** HTTP status of each code, as google.rpc.Code documents it. */
const statuses: Readonly<Record<Code, number>> = {
  [Code.Canceled]: 499,
  [Code.Unknown]: 500,
  [Code.InvalidArgument]: 400,
  [Code.DeadlineExceeded]: 504,
  [Code.NotFound]: 404,
  [Code.AlreadyExists]: 409,
  [Code.PermissionDenied]: 403,
  [Code.ResourceExhausted]: 429,
  [Code.FailedPrecondition]: 400,
  [Code.Aborted]: 409,
  [Code.OutOfRange]: 400,
  [Code.Unimplemented]: 501,
  [Code.Internal]: 500,
  [Code.Unavailable]: 503,
  [Code.DataLoss]: 500,
  [Code.Unauthenticated]: 401,
};

/** Response headers that the metadata of an error must not set. */
const responseHeaderNames = /^(content-|transfer-|trailer|connect-|grpc-)/i;

/**
 * Error of a Connect handler. The reason is that of the `google.rpc.ErrorInfo` detail, or else the name of the code.
 */
export class ConnectRpcError extends RpcError {
  constructor(readonly error: ConnectError) {
    const [info] = error.findDetails(ErrorInfoSchema);
    super(
      (info?.reason ?? Code[error.code].replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase()) as Reason,
      error.rawMessage,
      undefined,
      [...error.metadata].filter(([name]) => !responseHeaderNames.test(name)).flat(),
      create(FailureKindSchema, { httpStatus: statuses[error.code], grpcCode: error.code as number }),
    );
  }
}
