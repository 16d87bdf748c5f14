/**
 * gRPC calls to other nodes, with grpc-js and the compiled codecs. Messages are encoded and decoded outside of grpc-js,
 * so that a failed encoding is an error of this node, not of the other one.
 */
import {
  type DescMessage,
  type DescMethod,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import type { Client, ClientReadableStream, Interceptor, ServiceError } from "@grpc/grpc-js";
import { isIPv6 } from "node:net";
import { Code } from "../../../gen/google/rpc/code_pb.js";
import { StatusSchema } from "../../../gen/google/rpc/status_pb.js";
import type { TlsCredentials } from "../../base/crypto/certificate.js";
import { CallError, type ChannelTarget, type OpenChannel } from "../channel.js";
import { binaryEncoder } from "../codec/binary-encoder.js";
import { credentialsFor, findPeer, grpcJs, serverNameOf } from "./pinned-peer.js";

/** Limit on a message in bytes: a block and the data sent with it. */
const maxMessageBytes = 8 * 1024 * 1024;

/**
 * Creates the function that opens channels.
 *
 * @param tls certificate and key of this node; undefined for cleartext without identities.
 */
export function createGrpcClient(tls: TlsCredentials | undefined): OpenChannel {
  return async (target, untilMs) => {
    const peer = tls && (await findPeer(target, tls, untilMs));
    const { Client, credentials } = grpcJs();
    const client = new Client(
      isIPv6(target.ip) ? `ipv6:[${target.ip}]:${target.port}` : `ipv4:${target.ip}:${target.port}`,
      tls && peer ? credentialsFor(peer, tls) : credentials.createInsecure(),
      optionsFor(target),
    );
    return {
      identity: peer?.identity,
      call: (...args) => callUnary(client, ...args),
      stream: (...args) => callStream(client, ...args),
      close: () => client.close(),
    };
  };
}

function optionsFor(target: ChannelTarget) {
  return {
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 2_000,
    "grpc.max_receive_message_length": maxMessageBytes,
    "grpc.default_authority": target.authority,
    "grpc.ssl_target_name_override": serverNameOf(target),
    // A proxy could redirect the call from the validated address.
    "grpc.enable_http_proxy": 0,
    "grpc.use_local_subchannel_pool": 1,
    "grpc.enable_channelz": 0,
    "grpc.enable_retries": 0,
    "grpc.service_config_disable_resolution": 1,
  };
}

async function callUnary<I extends DescMessage, O extends DescMessage>(
  client: Client,
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
  deadline: number,
): Promise<MessageShape<O>> {
  const bytes = binaryEncoder(method.input)(request as object);
  const metadata = new (grpcJs().Metadata)();
  const response = await new Promise<Buffer>((resolve, reject) => {
    client.makeUnaryRequest(pathOf(method), same, same, bytes, metadata, { deadline }, (error, received) => {
      if (error !== null || received === undefined) {
        reject(toCallError(error ?? {}));
      } else {
        resolve(received);
      }
    });
  });
  return decodeResponse(method, response);
}

async function* callStream<I extends DescMessage, O extends DescMessage>(
  client: Client,
  method: DescMethodServerStreaming<I, O>,
  request: MessageInitShape<I>,
  signal: AbortSignal,
): AsyncGenerator<MessageShape<O>, void> {
  if (signal.aborted) {
    return;
  }
  const bytes = binaryEncoder(method.input)(request as object);
  const metadata = new (grpcJs().Metadata)();
  const readAhead = limitReadAhead();
  const options = { interceptors: [readAhead.interceptor] };
  const stream = client.makeServerStreamRequest(pathOf(method), same, same, bytes, metadata, options);
  // The reading loop throws errors. Ignore errors that arrive after reading has ended.
  stream.on("error", () => undefined);
  const cancel = (): void => stream.cancel();
  signal.addEventListener("abort", cancel, { once: true });
  try {
    for await (const response of withCallErrors(stream, readAhead)) {
      yield decodeResponse(method, response);
    }
  } finally {
    signal.removeEventListener("abort", cancel);
    cancel();
  }
}

/** Yields the messages of a stream. Converts only errors of the stream to CallError, not errors of its consumer. */
async function* withCallErrors(
  stream: ClientReadableStream<Buffer>,
  readAhead: ReturnType<typeof limitReadAhead>,
): AsyncGenerator<Buffer, void> {
  try {
    readAhead.request();
    for await (const response of stream as AsyncIterable<Buffer>) {
      yield response;
      readAhead.request();
    }
  } catch (error) {
    throw toCallError(error as Partial<ServiceError>);
  }
}

/**
 * Creates a read-ahead limit of one message for a stream. By default grpc-js reads 16 messages ahead, regardless of
 * size. For large blocks that is a quarter of a small node's memory.
 */
function limitReadAhead() {
  let isRequested = false;
  let deliver: (() => void) | undefined;
  const interceptor: Interceptor = (options, nextCall) =>
    new (grpcJs().InterceptingCall)(nextCall(options), {
      start(metadata, _, next) {
        next(metadata, {
          onReceiveMessage(message: unknown, next: (message: unknown) => void) {
            deliver = () => next(message);
            deliverRequested();
          },
        });
      },
    });
  function deliverRequested(): void {
    if (isRequested && deliver !== undefined) {
      const deliverNext = deliver;
      isRequested = false;
      deliver = undefined;
      deliverNext();
    }
  }
  /** Requests one more message: the one that waits, or the next to arrive. */
  function request(): void {
    isRequested = true;
    deliverRequested();
  }
  return { interceptor, request };
}

const same = (bytes: Buffer): Buffer => bytes;

function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

function decodeResponse<O extends DescMessage>({ output }: { readonly output: O }, bytes: Buffer): MessageShape<O> {
  try {
    return fromBinary(output, bytes, { readUnknownFields: false });
  } catch {
    throw new CallError(`The response is not a valid ${output.typeName}.`, false);
  }
}

/** Converts an error of grpc-js. Status details exist only if the other node responded. */
function toCallError(error: Partial<ServiceError>): CallError {
  const [details] = error.metadata?.get("grpc-status-details-bin") ?? [];
  if (Buffer.isBuffer(details)) {
    try {
      const { code, message } = fromBinary(StatusSchema, details);
      return new CallError(message, true, (code as Code) === Code.PERMISSION_DENIED);
    } catch {
      // Malformed details, which no node sends.
    }
  }
  return new CallError(error.details ?? error.message ?? "no response", false);
}
