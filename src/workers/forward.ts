/**
 * Rpcs that a worker hands to the node it belongs to, as what they tell or change is there: the worker's side makes
 * implementations of them, the node's side answers by its own.
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

/** An rpc with its request. */
export interface ForwardedCall {
  readonly service: string;
  readonly method: string;
  readonly request: Uint8Array;
  readonly caller: Caller;
}

/** What answers it, as one side of a wire. */
export interface Forwarding {
  readonly calls: { rpc(call: ForwardedCall, signal: AbortSignal): Promise<Uint8Array> };
  readonly streams: { rpc(call: ForwardedCall, signal: AbortSignal): AsyncIterable<Uint8Array> };
}

/** Hands rpcs to the node. */
export interface Forward {
  unary(call: ForwardedCall, signal: AbortSignal): Promise<Uint8Array>;
  stream(call: ForwardedCall, signal: AbortSignal): AsyncIterable<Uint8Array>;
}

/**
 * Implements a service by the node.
 *
 * @param isEverybodys its answers depend on the request alone, and hold no bytes: those who ask the same at a time get the same.
 */
export function forwardService<S extends DescService>(
  desc: S,
  forward: Forward,
  isEverybodys = false,
): Implementation<S> {
  const functions = desc.methods.map((method) => {
    const toForwarded = (request: Message, { caller }: Call): ForwardedCall => ({
      service: desc.typeName,
      method: method.localName,
      request: toBinary(method.input, request),
      caller,
    });
    const ofOne = async (request: Message, call: Call): Promise<Message> =>
      fromBinary(method.output, await forward.unary(toForwarded(request, call), call.signal));
    const ofMany = shareAnswers(async (forwarded) =>
      makeImmutable(fromBinary(method.output, await forward.unary(forwarded, neverAborted))),
    );
    const unary = isEverybodys
      ? (request: Message, call: Call): Promise<Message> => ofMany(toForwarded(request, call))
      : ofOne;
    async function* stream(request: Message, call: Call): AsyncGenerator<Message> {
      for await (const item of forward.stream(toForwarded(request, call), call.signal)) {
        yield fromBinary(method.output, item);
      }
    }
    if (method.methodKind !== "unary" && method.methodKind !== "server_streaming") {
      throw new Error(`${method.toString()} takes a stream, which is not forwarded.`);
    }
    return [method.localName, method.methodKind === "unary" ? unary : stream];
  });
  return Object.fromEntries(functions) as Implementation<S>;
}

/** Whoever of those who wait leaves, the others go on waiting. */
const neverAborted = new AbortController().signal;
/** Most different requests that are waited for by several; beyond that each asks for himself. */
const mostShared = 1_000;

/**
 * Asks once for all who ask the same. Who comes while it is asked waits until it is asked again: no answer is older than
 * its question.
 */
function shareAnswers<T>(ask: (call: ForwardedCall) => Promise<T>): (call: ForwardedCall) => Promise<T> {
  const asked = new Map<string, { readonly now: Promise<T>; next: Promise<T> | undefined }>();

  function begin(key: string, call: ForwardedCall): Promise<T> {
    const now = ask(call);
    const entry = { now, next: undefined };
    asked.set(key, entry);
    const forget = (): void => {
      if (asked.get(key) === entry) {
        asked.delete(key);
      }
    };
    now.then(forget, forget);
    return now;
  }

  return (call) => {
    const key = Buffer.from(call.request).toString("latin1");
    const entry = asked.get(key);
    if (entry === undefined) {
      return asked.size < mostShared ? begin(key, call) : ask(call);
    }
    entry.next ??= entry.now.then(
      () => begin(key, call),
      () => begin(key, call),
    );
    return entry.next;
  };
}

/** Answers what is forwarded by these services. */
export function answerForwarded(services: readonly ServedService[]): Forwarding {
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
        const answer = await (invoke(fromBinary(desc.input, call.request), { caller: call.caller, signal }) as Promise<
          MessageInitShape<DescMessage>
        >);
        return toBinary(desc.output, create(desc.output, answer));
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
