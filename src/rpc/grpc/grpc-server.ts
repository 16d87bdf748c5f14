/**
 * Serves the rpcs as native gRPC with grpc-js and the compiled codecs. Messages are decoded and encoded inside the
 * handlers, so that a malformed request is the caller's error and is told in the catalogue's words.
 */
import type { DescMethod } from "@bufbuild/protobuf";
import { create, toBinary } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import {
  Metadata,
  Server,
  type handleUnaryCall,
  type status as GrpcStatus,
  type ServerDuplexStream,
  type ServerErrorResponse,
  type ServerWritableStream,
  type ServiceDefinition,
  type UntypedHandleCall,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { on } from "node:events";
import { StatusSchema } from "../../../gen/google/rpc/status_pb.js";
import { requestDecoder } from "../codec/binary-decoder.js";
import { binaryEncoder } from "../codec/binary-encoder.js";
import { failureDetails } from "../failure-details.js";
import type { ProvenIdentities } from "./grpc-listener.js";
import { type Admission, type Arrival, explain, type ProtocolParts } from "../gate.js";
import { type Caller, LazyCall, type ServedMethod } from "../service.js";

/** Most bytes of one request message, after decompression. */
const maxMessageBytes = 4 * 1024 * 1024;

/** What connections say of callers. */
export interface GrpcCallers {
  /** What the other ends of connections have proved by TLS. */
  readonly identities?: ProvenIdentities;
  /** Header by which calls that were carried here tell the caller's address. */
  readonly addressHeader?: string;
}

/** A grpc-js server with every service, not listening yet. */
export function createGrpcServer(parts: ProtocolParts, callers: GrpcCallers = {}): Server {
  const server = new Server({
    "grpc.max_receive_message_length": maxMessageBytes,
    "grpc.max_concurrent_streams": 256,
    "grpc.max_connection_idle_ms": 10 * 60_000,
    // A connection whose other end vanished without a word is found by pings, and closed.
    "grpc.keepalive_time_ms": 60_000,
    "grpc.keepalive_timeout_ms": 20_000,
    // Its bookkeeping costs every call a little and nobody reads it.
    "grpc.enable_channelz": 0,
  });
  const grpcParts = { ...parts, callers };
  for (const service of parts.services) {
    const definition: Record<string, ServiceDefinition[string]> = {};
    const handlers: UntypedServiceImplementation = {};
    for (const method of service.methods) {
      definition[method.desc.localName] = definitionOf(method.desc);
      handlers[method.desc.localName] = handlerOf(method, grpcParts);
    }
    server.addService(definition, handlers);
  }
  return server;
}

type GrpcParts = ProtocolParts & { readonly callers: GrpcCallers };

const pass = (bytes: Buffer): Buffer => bytes;

function definitionOf(method: DescMethod): ServiceDefinition[string] {
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    requestStream: method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming",
    responseStream: method.methodKind === "server_streaming" || method.methodKind === "bidi_streaming",
    requestSerialize: pass,
    requestDeserialize: pass,
    responseSerialize: pass,
    responseDeserialize: pass,
  };
}

function handlerOf(served: ServedMethod, parts: GrpcParts): UntypedHandleCall {
  const decode = requestDecoder(served.desc.input);
  switch (served.desc.methodKind) {
    case "unary":
      return unaryHandler(served, decode, parts);
    case "server_streaming":
      return (call: ServerWritableStream<Buffer, Buffer>) =>
        void answerStream(served, call, () => decode(call.request), parts);
    case "bidi_streaming":
      return (call: ServerDuplexStream<Buffer, Buffer>) =>
        void answerStream(served, call, () => decodeEach(call, decode), parts);
    case "client_streaming":
      throw new Error(`${served.desc.parent.typeName}.${served.desc.name}: client streaming is not supported.`);
  }
}

function unaryHandler(
  served: ServedMethod,
  decode: (bytes: Buffer) => object,
  parts: GrpcParts,
): handleUnaryCall<Buffer, Buffer> {
  const { gate } = parts;
  const encode = binaryEncoder(served.desc.output);
  return (call, callback) => {
    const requestId = parts.nextRequestId();
    let admission: Admission | undefined;
    const reply = (message: object): void => {
      const bytes = encode(message);
      gate.settle(admission!);
      callback(null, bytes);
    };
    const fail = (error: unknown): void => callback(statusOf(error, requestId, admission, parts));
    try {
      admission = gate.admit(new GrpcArrival(requestId, call.getPeer(), call.metadata, served, parts.callers));
      const answer = served.invoke(decode(call.request), new GrpcCall(admission.caller, call));
      if (answer instanceof Promise) {
        answer.then(reply).catch(fail);
      } else {
        reply(answer);
      }
    } catch (error) {
      fail(error);
    }
  };
}

async function answerStream(
  served: ServedMethod,
  call: ServerWritableStream<Buffer, Buffer> | ServerDuplexStream<Buffer, Buffer>,
  request: () => object,
  parts: GrpcParts,
): Promise<void> {
  const encode = binaryEncoder(served.desc.output);
  const requestId = parts.nextRequestId();
  let admission: Admission | undefined;
  try {
    admission = parts.gate.admit(new GrpcArrival(requestId, call.getPeer(), call.metadata, served, parts.callers));
    const messages = served.invoke(request(), new GrpcCall(admission.caller, call)) as AsyncIterable<object>;
    for await (const message of messages) {
      if (call.cancelled) {
        break;
      }
      if (!call.write(encode(message))) {
        await drained(call);
      }
    }
    parts.gate.settle(admission);
    call.end();
  } catch (error) {
    call.emit("error", statusOf(error, requestId, admission, parts));
  }
}

async function drained(call: NodeJS.EventEmitter): Promise<void> {
  await new Promise<void>((resolve) => {
    const go = (): void => {
      call.off("drain", go).off("cancelled", go);
      resolve();
    };
    call.on("drain", go).on("cancelled", go);
  });
}

/** By events, since a stream that is iterated over destroys itself at its end, and with it the answer. */
async function* decodeEach(
  call: ServerDuplexStream<Buffer, Buffer>,
  decode: (bytes: Buffer) => object,
): AsyncGenerator<object> {
  const chunks = on(call, "data", { close: ["end", "cancelled"], highWaterMark: 16, lowWaterMark: 8 });
  for await (const [chunk] of chunks as AsyncIterable<[Buffer]>) {
    yield decode(chunk);
  }
}

/** Settles what was let in, and says how the failure travels. */
function statusOf(
  error: unknown,
  requestId: string,
  admission: Admission | undefined,
  parts: ProtocolParts,
): ServerErrorResponse {
  const failure = explain(error, requestId, parts);
  if (admission !== undefined) {
    parts.gate.settle(admission, failure);
  }
  const metadata = new Metadata();
  if (failure !== error) {
    metadata.set("x-request-id", requestId);
  }
  const status = create(StatusSchema, {
    code: failure.kind.grpcCode,
    message: failure.message,
    details: failureDetails(failure).map(({ desc, value }) => anyPack(desc, value)),
  });
  metadata.set("grpc-status-details-bin", Buffer.from(toBinary(StatusSchema, status)));
  return {
    name: failure.name,
    message: failure.message,
    // eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment -- the catalogue holds the same numbers
    code: failure.kind.grpcCode as number as GrpcStatus,
    details: failure.message,
    metadata,
  };
}

class GrpcArrival implements Arrival {
  readonly protocol = "grpc";

  constructor(
    readonly requestId: string,
    private readonly peer: string,
    private readonly metadata: Metadata,
    readonly method: ServedMethod,
    private readonly callers: GrpcCallers,
  ) {}

  get provenIdentity(): string | undefined {
    return this.callers.identities?.get(this.peer);
  }

  /** grpc-js gives `address:port`, IPv6 without brackets; of a connection in memory it knows nothing. */
  get remoteAddress(): string {
    const { addressHeader } = this.callers;
    const carried = addressHeader === undefined ? undefined : this.header(addressHeader);
    if (carried !== undefined) {
      return carried;
    }
    return this.peer.slice(0, Math.max(0, this.peer.lastIndexOf(":")));
  }

  header(name: string): string | undefined {
    const values = this.metadata.get(name);
    return values.length === 0 ? undefined : values.join(", ");
  }
}

interface CancellableCall {
  readonly cancelled: boolean;
  once(event: "cancelled", listener: () => void): unknown;
}

class GrpcCall extends LazyCall {
  constructor(
    caller: Caller,
    private readonly call: CancellableCall,
  ) {
    super(caller);
  }

  protected get isGone(): boolean {
    return this.call.cancelled;
  }

  protected onGone(listener: () => void): void {
    this.call.once("cancelled", listener);
  }
}
