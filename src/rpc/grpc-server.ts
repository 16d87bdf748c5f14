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
  type handleServerStreamingCall,
  type handleUnaryCall,
  type status as GrpcStatus,
  type ServerErrorResponse,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "../../gen/google/rpc/status_pb.js";
import { Failure, toFailure } from "../errors.js";
import { binaryDecoder } from "./binary-decoder.js";
import { binaryEncoder } from "./binary-encoder.js";
import type { Arrival, Gate } from "./gate.js";
import type { Call, Caller, ServedMethod, ServedService } from "./service.js";

/** What the server needs. */
export interface GrpcServerParts {
  readonly services: readonly ServedService[];
  readonly gate: Gate;
  readonly nextRequestId: () => string;
  /** Hears of every exception that the caller is told nothing about. */
  readonly onInternalError: (error: unknown, requestId: string) => void;
}

/** Most bytes of one request message. */
const maxMessageBytes = 4 * 1024 * 1024;

/** A grpc-js server with every service, not listening yet. */
export function createGrpcServer(parts: GrpcServerParts): Server {
  const server = new Server({
    "grpc.max_receive_message_length": maxMessageBytes,
    "grpc.max_concurrent_streams": 256,
    // Its bookkeeping costs every call a little and nobody reads it.
    "grpc.enable_channelz": 0,
  });
  for (const service of parts.services) {
    const definition: Record<string, ServiceDefinition[string]> = {};
    const handlers: UntypedServiceImplementation = {};
    for (const method of service.methods) {
      definition[method.desc.localName] = definitionOf(method.desc);
      handlers[method.desc.localName] =
        method.desc.methodKind === "unary" ? unaryHandler(method, parts) : streamHandler(method, parts);
    }
    server.addService(definition, handlers);
  }
  return server;
}

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

function unaryHandler(served: ServedMethod, parts: GrpcServerParts): handleUnaryCall<Buffer, Buffer> {
  const decode = requestDecoder(served);
  const encode = binaryEncoder(served.desc.output);
  return (call, callback) => {
    const arrival = new GrpcArrival(call.getPeer(), call.metadata, served.desc);
    const reply = (message: object): void => {
      const bytes = encode(message);
      parts.gate.settle(arrival);
      callback(null, bytes);
    };
    const fail = (error: unknown): void => {
      parts.gate.settle(arrival);
      callback(statusOf(error, parts));
    };
    try {
      const caller = parts.gate.admit(arrival);
      const answer = served.invoke(decode(call.request), new GrpcCall(caller, call));
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

function streamHandler(served: ServedMethod, parts: GrpcServerParts): handleServerStreamingCall<Buffer, Buffer> {
  if (served.desc.methodKind !== "server_streaming") {
    throw new Error(`${served.desc.parent.typeName}.${served.desc.name}: streams of requests are not supported.`);
  }
  const decode = requestDecoder(served);
  const encode = binaryEncoder(served.desc.output);
  return (call) => {
    const arrival = new GrpcArrival(call.getPeer(), call.metadata, served.desc);
    void (async () => {
      try {
        const caller = parts.gate.admit(arrival);
        const messages = served.invoke(decode(call.request), new GrpcCall(caller, call)) as AsyncIterable<object>;
        for await (const message of messages) {
          if (call.cancelled) {
            break;
          }
          if (!call.write(encode(message))) {
            await drained(call);
          }
        }
        call.end();
      } catch (error) {
        call.emit("error", statusOf(error, parts));
      } finally {
        parts.gate.settle(arrival);
      }
    })();
  };
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

function requestDecoder(served: ServedMethod): (bytes: Buffer) => object {
  const decode = binaryDecoder(served.desc.input);
  return (bytes) => {
    try {
      return decode(bytes);
    } catch {
      throw new Failure("INVALID_REQUEST", `The request is not a valid ${served.desc.input.typeName}.`);
    }
  };
}

function statusOf(error: unknown, parts: GrpcServerParts): ServerErrorResponse {
  const failure = toFailure(error);
  const metadata = new Metadata();
  const detail: Record<string, string> = {};
  if (failure !== error) {
    const requestId = parts.nextRequestId();
    parts.onInternalError(error, requestId);
    metadata.set("x-request-id", requestId);
    detail.requestId = requestId;
  }
  const status = create(StatusSchema, {
    code: failure.kind.grpcCode,
    message: failure.message,
    details: [
      anyPack(
        ErrorInfoSchema,
        create(ErrorInfoSchema, { reason: failure.reason, domain: "gatehouse", metadata: detail }),
      ),
    ],
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
  constructor(
    private readonly peer: string,
    private readonly metadata: Metadata,
    readonly method: DescMethod,
  ) {}

  /** grpc-js gives `address:port`, IPv6 without brackets. */
  get remoteAddress(): string {
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

class GrpcCall implements Call {
  #signal: AbortSignal | undefined;

  constructor(
    readonly caller: Caller,
    private readonly call: CancellableCall,
  ) {}

  get signal(): AbortSignal {
    if (this.#signal === undefined) {
      const controller = new AbortController();
      this.#signal = controller.signal;
      this.call.once("cancelled", () => controller.abort());
      if (this.call.cancelled) {
        controller.abort();
      }
    }
    return this.#signal;
  }
}
