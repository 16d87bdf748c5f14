/** Generates the table of docs/errors.md. */
import { ReasonSchema } from "../../gen/gatehouse/errors/v1/errors_pb.js";
import { Code } from "../../gen/google/rpc/code_pb.js";
import { commentOf } from "../../src/rpc/describe/comments.js";
import { errorCatalog, type Reason } from "../../src/rpc/errors.js";
import { serverError } from "../../src/rpc/json-rpc/request.js";
import { code, plain, table } from "./markdown.js";

/** Returns every error reason of the API in order, with its comment in the proto file. */
export function reasonsTable(): string {
  const reasons = ReasonSchema.values.filter(({ localName }) => localName in errorCatalog);
  return table(
    ["Reason", "HTTP", "gRPC", "JSON-RPC", "Transient", "When, and what to do"],
    reasons.map(({ localName, name }) => {
      const { httpStatus, grpcCode, jsonRpcCode = serverError, transient } = errorCatalog[localName as Reason];
      return [
        code(localName),
        String(httpStatus),
        `${grpcCode} ${code(Code[grpcCode])}`,
        String(jsonRpcCode),
        transient ? "yes" : "",
        plain(commentOf(`${ReasonSchema.typeName}.${name}`)),
      ];
    }),
  );
}
