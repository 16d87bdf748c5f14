/** Every rpc protocol, as the clients of others speak it. */
import { type DescMethod, fromBinary, type Message } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { ConnectError, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import type { ServiceError } from "@grpc/grpc-js";
import { ErrorInfoSchema, type RetryInfo, RetryInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "../../gen/google/rpc/status_pb.js";
import { connectGrpc } from "./grpc-client.js";

/** The protocols. */
export const rpcProtocols = ["gRPC", "gRPC by Connect", "Connect JSON", "Connect binary", "gRPC-Web"] as const;

/** One of the protocols. */
export type RpcProtocol = (typeof rpcProtocols)[number];

/** A client of one port and protocol. */
export interface RpcClient {
  call(method: DescMethod, request: object, headers?: Readonly<Record<string, string>>): Promise<Message>;
  /** The messages of a server stream, until the signal is aborted. */
  stream(method: DescMethod, request: object, signal: AbortSignal): AsyncIterable<Message>;
  close(): void;
}

/** What a client reads of a failure. */
export interface RpcFailure {
  readonly code: number;
  readonly message: string;
  /** Reason of the ErrorInfo detail. */
  readonly reason: string | undefined;
  /** Seconds of the RetryInfo detail. */
  readonly retryAfterS: number | undefined;
}

/** A client for each protocol. */
export function connectEach(port: number): Record<RpcProtocol, RpcClient> {
  const baseUrl = `http://127.0.0.1:${port}`;
  const grpc = connectGrpc(port);
  return {
    gRPC: {
      call: (method, request, headers) => grpc.call(method as never, request as never, headers) as Promise<Message>,
      stream: () => {
        throw new Error("Streams are tested with the other gRPC client.");
      },
      close: () => grpc.close(),
    },
    "gRPC by Connect": overTransport(createGrpcTransport({ baseUrl })),
    "Connect JSON": overTransport(createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false })),
    "Connect binary": overTransport(createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: true })),
    "gRPC-Web": overTransport(createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })),
  };
}

function overTransport(transport: Transport): RpcClient {
  return {
    async call(method, request, headers) {
      const response = await transport.unary(method as never, undefined, 20_000, headers, request as never);
      return response.message as Message;
    },
    async *stream(method, request, signal) {
      const input = (async function* () {
        yield await Promise.resolve(request as never);
      })();
      const response = await transport.stream(method as never, signal, undefined, undefined, input);
      yield* response.message as AsyncIterable<Message>;
    },
    close: () => undefined,
  };
}

/** What a rejected call tells its caller. */
export function readFailure(error: unknown): RpcFailure {
  if (error instanceof ConnectError) {
    const [info] = error.findDetails(ErrorInfoSchema);
    const [retry] = error.findDetails(RetryInfoSchema);
    return { code: error.code, message: error.rawMessage, reason: info?.reason, retryAfterS: secondsOf(retry) };
  }
  const { code, details, metadata } = error as ServiceError;
  const [packed] = metadata.get("grpc-status-details-bin");
  const status = packed === undefined ? undefined : fromBinary(StatusSchema, Buffer.from(packed as Buffer));
  const [info] = (status?.details ?? []).flatMap((detail) => anyUnpack(detail, ErrorInfoSchema) ?? []);
  const [retry] = (status?.details ?? []).flatMap((detail) => anyUnpack(detail, RetryInfoSchema) ?? []);
  return { code, message: details, reason: info?.reason, retryAfterS: secondsOf(retry) };
}

function secondsOf(retry: RetryInfo | undefined): number | undefined {
  return retry?.retryDelay === undefined ? undefined : Number(retry.retryDelay.seconds);
}
