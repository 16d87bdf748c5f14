/**
 * Forwards rpcs from a worker to its node, if the data that they read or change is there. The worker has
 * implementations that forward each call; the node runs its own implementations.
 */
import {
  create,
  type DescMessage,
  type DescService,
  fromBinary,
  type Message,
  type MessageInitShape,
  toBinary,
} from "@bufbuild/protobuf";
import { makeImmutable } from "../base/caches/immutable.js";
import { RpcError } from "../rpc/errors.js";
import type { Call, Caller, Implementation, ServedMethod, ServedService } from "../rpc/service.js";

export interface ForwardedCall {
  readonly service: string;
  readonly method: string;
  readonly request: Uint8Array;
  readonly caller: Caller;
}

/** Handlers for forwarded calls, as a part of the IPC handlers of the node. */
export interface Forwarding {
  readonly calls: { rpc(call: ForwardedCall, signal: AbortSignal): Promise<Uint8Array> };
  readonly streams: { rpc(call: ForwardedCall, signal: AbortSignal): AsyncIterable<Uint8Array> };
}

export interface Forward {
  unary(call: ForwardedCall, signal: AbortSignal): Promise<Uint8Array>;
  stream(call: ForwardedCall, signal: AbortSignal): AsyncIterable<Uint8Array>;
}

/**
 * Implements a service by forwarding its rpcs to the node.
 *
 * @param isSameForAllCallers true if the responses depend on the request alone and contain no fields of type bytes.
 *   Equal concurrent requests then share one response.
 */
export function forwardService<S extends DescService>(
  desc: S,
  forward: Forward,
  isSameForAllCallers = false,
): Implementation<S> {
  const functions = desc.methods.map((method) => {
    const toForwarded = (request: Message, { caller }: Call): ForwardedCall => ({
      service: desc.typeName,
      method: method.localName,
      request: toBinary(method.input, request),
      caller,
    });
    const callAlone = async (request: Message, call: Call): Promise<Message> =>
      fromBinary(method.output, await forward.unary(toForwarded(request, call), call.signal));
    const callShared = shareResponses(async (forwarded) =>
      makeImmutable(fromBinary(method.output, await forward.unary(forwarded, neverAborted))),
    );
    const unary = isSameForAllCallers
      ? (request: Message, call: Call): Promise<Message> => callShared(toForwarded(request, call))
      : callAlone;
    async function* stream(request: Message, call: Call): AsyncGenerator<Message> {
      for await (const item of forward.stream(toForwarded(request, call), call.signal)) {
        yield fromBinary(method.output, item);
      }
    }
    if (method.methodKind !== "unary" && method.methodKind !== "server_streaming") {
      throw new Error(`${method.toString()} has a request stream, which is not forwarded.`);
    }
    return [method.localName, method.methodKind === "unary" ? unary : stream];
  });
  return Object.fromEntries(functions) as Implementation<S>;
}

/** Signal of shared requests, which never abort: if one caller leaves, the others still wait. */
const neverAborted = new AbortController().signal;

/**
 * Shares one request among equal concurrent calls. A call that arrives while a request is in flight waits for the next
 * request, so that no response is older than its call.
 */
function shareResponses<T>(request: (call: ForwardedCall) => Promise<T>): (call: ForwardedCall) => Promise<T> {
  const inFlight = new Map<string, { readonly now: Promise<T>; next: Promise<T> | undefined }>();

  function start(key: string, call: ForwardedCall): Promise<T> {
    const now = request(call);
    const entry = { now, next: undefined };
    inFlight.set(key, entry);
    void settled(now).then(() => inFlight.get(key) === entry && inFlight.delete(key));
    return now;
  }

  return (call) => {
    const key = Buffer.from(call.request).toString("latin1");
    const entry = inFlight.get(key);
    if (entry === undefined) {
      return start(key, call);
    }
    return (entry.next ??= settled(entry.now).then(() => start(key, call)));
  };
}

async function settled(work: Promise<unknown>): Promise<void> {
  await work.catch(() => undefined);
}

/** Creates the handlers that run forwarded calls with these services. */
export function createForwardHandlers(services: readonly ServedService[]): Forwarding {
  const methods = new Map(
    services.flatMap(({ desc, methods }) =>
      methods.map((served) => [`${desc.typeName}/${served.desc.localName}`, served]),
    ),
  );

  function find({ service, method }: ForwardedCall): ServedMethod {
    const found = methods.get(`${service}/${method}`);
    if (found === undefined) {
      throw new RpcError("NOT_IMPLEMENTED", `There is no rpc ${method} of ${service} here.`);
    }
    return found;
  }

  return {
    calls: {
      async rpc(call, signal) {
        const { desc, beforeBody, invoke } = find(call);
        beforeBody?.(call.request.length, call.caller);
        const response = invoke(fromBinary(desc.input, call.request), { caller: call.caller, signal });
        return toBinary(desc.output, create(desc.output, await (response as Promise<MessageInitShape<DescMessage>>)));
      },
    },
    streams: {
      async *rpc(call, signal) {
        const { desc, invoke } = find(call);
        const items = invoke(fromBinary(desc.input, call.request), { caller: call.caller, signal });
        for await (const item of items as AsyncIterable<MessageInitShape<DescMessage>>) {
          yield toBinary(desc.output, create(desc.output, item));
        }
      },
    },
  };
}
