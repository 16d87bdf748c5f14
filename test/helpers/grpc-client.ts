/** gRPC as another program speaks it: grpc-js with protobuf-es, none of the node's codecs. */
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "../../gen/google/rpc/status_pb.js";
import { anyUnpack } from "@bufbuild/protobuf/wkt";

/** A failure, as a client reads it. */
export interface GrpcFailure {
  readonly code: number;
  readonly message: string;
  /** Reason of the ErrorInfo detail. */
  readonly reason: string | undefined;
}

/** A client of one port. */
export interface TestGrpcClient {
  call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request?: MessageInitShape<I>,
    metadata?: Readonly<Record<string, string>>,
  ): Promise<MessageShape<O>>;
  close(): void;
}

/** Connects when first used. */
export function connectGrpc(port: number): TestGrpcClient {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  return {
    call(method, request, headers = {}) {
      const metadata = new Metadata();
      for (const [name, value] of Object.entries(headers)) {
        metadata.set(name, value);
      }
      return new Promise((resolve, reject) => {
        client.makeUnaryRequest(
          `/${method.parent.typeName}/${method.name}`,
          (message: object) => Buffer.from(toBinary(method.input, message as never)),
          (bytes) => fromBinary(method.output, bytes),
          create(method.input, request),
          metadata,
          { deadline: Date.now() + 20_000 },
          (error, response) => {
            if (error === null && response !== undefined) {
              resolve(response);
            } else {
              reject(error ?? new Error("no response"));
            }
          },
        );
      });
    },
    close: () => client.close(),
  };
}

/** What a rejected call tells its caller. */
export function readFailure(error: unknown): GrpcFailure {
  const { code, details, metadata } = error as ServiceError;
  const [packed] = metadata.get("grpc-status-details-bin");
  const status = packed === undefined ? undefined : fromBinary(StatusSchema, Buffer.from(packed as Buffer));
  const infos = (status?.details ?? []).flatMap((detail) => anyUnpack(detail, ErrorInfoSchema) ?? []);
  return { code, message: details, reason: infos[0]?.reason };
}
