/**
 * Services in the form of the Connect library: standard implementations, registered by one function that every adapter
 * of the library accepts.
 */
import {
  Code,
  ConnectError,
  type ConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
  type ServiceImpl,
} from "@connectrpc/connect";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import type { DescService } from "@bufbuild/protobuf";
import { jsonNameOf, type NameOf, protoNameOf, requestValidator } from "../codec/request-rules.js";
import { RpcError } from "../errors.js";
import { maxMessageBytes, maxRequestBytes } from "../exchange/rpc-requests.js";
import { deadlineExceeded } from "../exchange/serve.js";
import { nextTick } from "../exchange/pacing.js";
import { toReportedError, type ProtocolDeps } from "../gate.js";
import type { Caller, ServedMethod, ServedService } from "../service.js";
import { toConnectError } from "./connect-error.js";

/** Context key of the caller. The default is an anonymous caller without an address. */
export const callerKey = createContextKey<Caller>({ address: "", identity: undefined });

/** State of a call that the library processes, shared with the code that serves the call. */
export interface LibraryCall {
  readonly requestId: string;
  /** Aborts with the call, with DEADLINE_EXCEEDED at its deadline; undefined if only the library knows the deadline. */
  readonly signal: AbortSignal | undefined;
  /** Error of the call; undefined after the function has returned a response. */
  failure: RpcError | undefined;
}

const libraryCallKey = createContextKey<LibraryCall>({ requestId: "", signal: undefined, failure: undefined });

export const libraryOptions = {
  acceptCompression: [compressionGzip, compressionBrotli],
  readMaxBytes: maxMessageBytes,
  jsonOptions: { ignoreUnknownFields: true },
  // Each unknown field would be an object of a hundred times its bytes.
  binaryOptions: { readUnknownFields: false },
};

/**
 * Creates the state of a call, for the context. The initial error covers requests that the library itself rejects.
 */
export function createLibraryCall(requestId: string, { desc }: ServedMethod, signal: AbortSignal): LibraryCall {
  return {
    requestId,
    signal,
    failure: new RpcError("INVALID_REQUEST", `The request is not a valid ${desc.input.typeName}.`),
  };
}

export function valuesOf(caller: Caller, libraryCall: LibraryCall) {
  return createContextValues().set(callerKey, caller).set(libraryCallKey, libraryCall);
}

export function connectRoutes(
  deps: Pick<ProtocolDeps, "services" | "onInternalError">,
): (router: ConnectRouter) => void {
  return (router) => deps.services.forEach((service) => register(router, service, deps));
}

type Deps = Pick<ProtocolDeps, "onInternalError">;

function register(router: ConnectRouter, { desc, methods }: ServedService, deps: Deps): void {
  const functions = methods.map((method) => [
    method.desc.localName,
    method.desc.methodKind === "unary" ? unary(method, deps) : stream(method, deps),
  ]);
  const readMaxBytes = Math.max(...methods.map((method) => maxRequestBytes(method.desc)));
  router.service(desc, Object.fromEntries(functions) as ServiceImpl<DescService>, { readMaxBytes });
}

function unary(served: ServedMethod, deps: Deps) {
  return async (request: object, context: HandlerContext): Promise<object> => {
    const { values } = context;
    const libraryCall = values.get(libraryCallKey);
    const signal = signalOf(context);
    try {
      requestValidator(served.desc.input)(request, nameOfField(context));
      const called = Promise.resolve(served.invoke(request, { caller: values.get(callerKey), signal }));
      const response = await beforeDeadline(called, signal);
      libraryCall.failure = undefined;
      return response;
    } catch (error) {
      throw fail(error, context, deps);
    }
  };
}

function stream(served: ServedMethod, deps: Deps) {
  return async function* (request: object, context: HandlerContext): AsyncGenerator<object> {
    const { values } = context;
    const libraryCall = values.get(libraryCallKey);
    const signal = signalOf(context);
    let messages: AsyncIterator<object> | undefined;
    try {
      libraryCall.failure = undefined;
      if (served.desc.methodKind === "server_streaming") {
        requestValidator(served.desc.input)(request, nameOfField(context));
      }
      const iterable = served.invoke(request, { caller: values.get(callerKey), signal }) as AsyncIterable<object>;
      messages = iterable[Symbol.asyncIterator]();
      for (let next; (next = await beforeDeadline(messages.next(), signal)).done !== true;) {
        // Encode each message in its own tick, because messages may be large.
        await nextTick();
        yield next.value;
      }
      if (isPastDeadline(signal)) {
        throw deadlineExceeded();
      }
    } catch (error) {
      throw fail(error, context, deps);
    } finally {
      // Not awaited, because a function that waits for its client cannot end yet.
      void messages?.return?.().catch(() => undefined);
    }
  };
}

function signalOf({ values, signal }: HandlerContext): AbortSignal {
  return values.get(libraryCallKey).signal ?? signal;
}

/** Records a thrown value as the error of the call, and returns the error in the library's type. */
function fail(thrown: unknown, context: HandlerContext, deps: Deps): ConnectError {
  const signal = signalOf(context);
  if (signal.aborted && !isPastDeadline(signal)) {
    // The client gets no response, and an aborted function is expected to throw.
    return new ConnectError("The client disconnected.", Code.Canceled);
  }
  const libraryCall = context.values.get(libraryCallKey);
  // A function may throw anything because its signal was aborted.
  const failure = signal.aborted ? deadlineExceeded() : fromLibrary(thrown);
  libraryCall.failure = toReportedError(failure, libraryCall.requestId, deps);
  return toConnectError(libraryCall.failure);
}

/** Converts an error of the library about a message of a stream. */
function fromLibrary(thrown: unknown): unknown {
  const code = thrown instanceof ConnectError ? thrown.code : undefined;
  switch (code) {
    case Code.ResourceExhausted:
      return new RpcError("PAYLOAD_TOO_LARGE", "A message of the stream is larger than this rpc accepts.");
    case Code.InvalidArgument:
      return new RpcError("INVALID_REQUEST", "A message of the stream cannot be read.");
    default:
      return thrown;
  }
}

/** Returns the function that names fields as the caller does. */
function nameOfField({ requestHeader, url }: HandlerContext): NameOf {
  const type = requestHeader.get("content-type") ?? new URL(url).searchParams.get("encoding");
  return type?.includes("json") === true ? jsonNameOf : protoNameOf;
}

/** Settles as the promise does, or rejects at the deadline, also if the function waits for its client. */
async function beforeDeadline<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return await new Promise<T>((resolve, reject) => {
    const check = (): void => (isPastDeadline(signal) ? reject(deadlineExceeded()) : undefined);
    const stop = (): void => signal.removeEventListener("abort", check);
    signal.addEventListener("abort", check);
    promise.then(resolve, reject).finally(stop);
    check();
  });
}

function isPastDeadline({ reason }: AbortSignal): boolean {
  return reason instanceof RpcError
    ? reason.reason === "DEADLINE_EXCEEDED"
    : reason instanceof ConnectError && reason.code === Code.DeadlineExceeded;
}
