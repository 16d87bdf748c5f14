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

/** A client of one port. */
export interface TestGrpcClient {
  call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request?: MessageInitShape<I>,
    metadata?: Readonly<Record<string, string>>,
  ): Promise<MessageShape<O>>;
  stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    signal: AbortSignal,
    metadata?: Readonly<Record<string, string>>,
  ): AsyncIterable<MessageShape<O>>;
  close(): void;
}

function metadataOf(headers: Readonly<Record<string, string>>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) {
    metadata.set(name, value);
  }
  return metadata;
}

/** Calls with a client of grpc-js. */
export function callUnary<I extends DescMessage, O extends DescMessage>(
  client: Client,
  method: DescMethodUnary<I, O>,
  request?: MessageInitShape<I>,
  headers: Readonly<Record<string, string>> = {},
): Promise<MessageShape<O>> {
  const metadata = metadataOf(headers);
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
}

/** Yields the messages of a server stream, until it ends or the signal aborts. */
export async function* callStream<I extends DescMessage, O extends DescMessage>(
  client: Client,
  method: DescMethodServerStreaming<I, O>,
  request?: MessageInitShape<I>,
  signal?: AbortSignal,
  headers: Readonly<Record<string, string>> = {},
): AsyncGenerator<MessageShape<O>> {
  const stream = client.makeServerStreamRequest(
    `/${method.parent.typeName}/${method.name}`,
    (message: object) => Buffer.from(toBinary(method.input, message as never)),
    (bytes) => fromBinary(method.output, bytes),
    create(method.input, request),
    metadataOf(headers),
    { deadline: Date.now() + 20_000 },
  );
  signal?.addEventListener("abort", () => stream.cancel(), { once: true });
  yield* stream as AsyncIterable<MessageShape<O>>;
}

/** Creates a client that connects on its first call, over TLS if a certificate is set. */
export function connectGrpc(port: number, ca?: Buffer): TestGrpcClient {
  const client =
    ca === undefined
      ? new Client(`127.0.0.1:${port}`, credentials.createInsecure())
      : new Client(`localhost:${port}`, credentials.createSsl(ca));
  return {
    call: (method, request, headers) => callUnary(client, method, request, headers),
    stream: (method, request, signal, headers) => callStream(client, method, request, signal, headers),
    close: () => client.close(),
  };
}
