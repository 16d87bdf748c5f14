/** A gRPC client with grpc-js and protobuf-es, without codecs of the node. */
import {
  create,
  type DescMessage,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { Client, credentials, Metadata } from "@grpc/grpc-js";

/** Headers of a call. */
type Headers = Readonly<Record<string, string>>;

/** A client of one port. */
export type TestGrpcClient = ReturnType<typeof callsOver>;

/** Returns the calls over a client of grpc-js. */
export function callsOver(client: Client) {
  const argumentsOf = <I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O> | DescMethodServerStreaming<I, O>,
    request?: MessageInitShape<I>,
    headers: Headers = {},
  ) =>
    [
      `/${method.parent.typeName}/${method.name}`,
      (message: object) => Buffer.from(toBinary(method.input, message as never)),
      (bytes: Buffer) => fromBinary(method.output, bytes),
      create(method.input, request),
      Metadata.fromHttp2Headers(headers),
      { deadline: Date.now() + 20_000 },
    ] as const;
  return {
    call: <I extends DescMessage, O extends DescMessage>(
      method: DescMethodUnary<I, O>,
      request?: MessageInitShape<I>,
      headers?: Headers,
    ): Promise<MessageShape<O>> =>
      new Promise((resolve, reject) => {
        client.makeUnaryRequest(...argumentsOf(method, request, headers), (error, response) => {
          if (error === null && response !== undefined) {
            resolve(response);
          } else {
            reject(error ?? new Error("no response"));
          }
        });
      }),
    /** Yields the messages of a server stream, until it ends or the signal aborts. */
    async *stream<I extends DescMessage, O extends DescMessage>(
      method: DescMethodServerStreaming<I, O>,
      request?: MessageInitShape<I>,
      signal?: AbortSignal,
      headers?: Headers,
    ): AsyncGenerator<MessageShape<O>> {
      const stream = client.makeServerStreamRequest(...argumentsOf(method, request, headers));
      signal?.addEventListener("abort", () => stream.cancel(), { once: true });
      yield* stream as AsyncIterable<MessageShape<O>>;
    },
    close: () => client.close(),
  };
}

/** Creates a client that connects on its first call, over TLS if a certificate is set. */
export function connectGrpc(port: number, ca?: Buffer): TestGrpcClient {
  return callsOver(
    ca === undefined
      ? new Client(`127.0.0.1:${port}`, credentials.createInsecure())
      : new Client(`localhost:${port}`, credentials.createSsl(ca)),
  );
}
