/**
 * What a service is to the protocols that carry it: descriptors on one side, plain functions on the other. Nothing here
 * or in the functions knows which protocol a call came by.
 */
import {
  type DescMessage,
  type DescMethod,
  type DescMethodBiDiStreaming,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type DescService,
  getOption,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { identifies_caller, probe } from "../../gen/gatehouse/annotations/v1/annotations_pb.js";

/** Who calls. */
export interface Caller {
  /** IP address; IPv4-mapped IPv6 addresses are given as IPv4. */
  readonly address: string;
  /** Ed25519 public key that the caller proved to hold, 0x and 64 lower-case hex digits; undefined when anonymous. */
  readonly identity: string | undefined;
}

/** One call, as an implementation sees it. */
export interface Call {
  readonly caller: Caller;
  /** Aborted when the caller has gone away or the deadline has passed. */
  readonly signal: AbortSignal;
}

/**
 * Returns the call as another rpc sees it, for protocols whose requests name their rpcs in the body.
 *
 * @param caller the caller, as that rpc may know it.
 */
export function withCaller(call: Call, caller: Caller): Call {
  return {
    caller,
    get signal() {
      return call.signal;
    },
  };
}

/** A message as a literal that nobody writes to, so that it may hold what its maker keeps and shares. */
export type Literal<T> = T extends string | number | bigint | boolean | undefined | Uint8Array
  ? T
  : { readonly [K in keyof T]: Literal<T[K]> };

/**
 * What a unary function returns: the response as a literal, at once where it can be, so that a call that waits for
 * nothing costs no promise. Fields left out have their default.
 */
export type RpcResponse<O extends DescMessage> = Literal<MessageInitShape<O>> | Promise<Literal<MessageInitShape<O>>>;

/**
 * For how long an answer is right: for good, as nothing can change it any more, for nobody; as long as the state that
 * blocks change, which is what every answer is that nothing is said of; or for the moment, as more than blocks change it.
 */
export type CacheLifetime = "for good" | "state" | "moment";

const lifetimes = new WeakMap<object, CacheLifetime>();

/** Says for how long an answer is right, and gives it back: for rpcs whose answers differ in it. */
export function withCacheLifetime<T extends object>(answer: T, lifetime: CacheLifetime): T {
  lifetimes.set(answer, lifetime);
  return answer;
}

export function lifetimeOf(answer: object): CacheLifetime {
  return lifetimes.get(answer) ?? "state";
}

type MethodFunction<M> =
  M extends DescMethodUnary<infer I, infer O>
    ? (request: MessageShape<I>, call: Call) => RpcResponse<O>
    : M extends DescMethodServerStreaming<infer I, infer O>
      ? (request: MessageShape<I>, call: Call) => AsyncIterable<Literal<MessageInitShape<O>>>
      : M extends DescMethodBiDiStreaming<infer I, infer O>
        ? (requests: AsyncIterable<MessageShape<I>>, call: Call) => AsyncIterable<Literal<MessageInitShape<O>>>
        : never;

/** One function per rpc of a service; a missing or misspelt one does not compile. */
export type Implementation<S extends DescService> = {
  readonly [K in keyof S["method"]]: MethodFunction<S["method"][K]>;
};

/** What a reply over plain HTTP has beyond its body. */
export interface PlainReply {
  /** HTTP status; 200 when left out. */
  readonly status?: number;
  /** Header names and values. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** For an rpc whose answer changes the HTTP status or headers: response to {@link PlainReply}. */
export type PlainReplies<S extends DescService> = {
  readonly [K in keyof S["method"]]?: S["method"][K] extends DescMethodUnary<DescMessage, infer O>
    ? (response: Literal<MessageInitShape<O>>) => PlainReply
    : never;
};

/** One rpc and its function, with types forgotten: what the protocol machinery works with. */
export interface ServedMethod {
  readonly desc: DescMethod;
  /**
   * The function: a unary one gives a message or a promise of it, a streaming one an iterable of messages. It takes a
   * message, or an iterable of them where the requests are a stream.
   */
  readonly invoke: (request: object, call: Call) => object;
  readonly plainReply: ((response: object) => PlainReply) | undefined;
  /** {@link BodyChecks} */
  readonly beforeBody: BodyCheck | undefined;
  /** Probes call it: it is never limited, and answered under overload. */
  readonly isProbe: boolean;
  /** The headers that prove an identity are read for it; for any other rpc they are ignored. */
  readonly identifiesCaller: boolean;
}

/**
 * Refuses a call before its body is looked at, by throwing the Failure that it would end with.
 *
 * @param contentLength how long the body will be; 0 where that is not said.
 */
export type BodyCheck = (contentLength: number, caller: Caller) => void;

/** For an rpc whose requests are large, and often refused for who sends them or how much there is of them. */
export type BodyChecks<S extends DescService> = { readonly [K in keyof S["method"]]?: BodyCheck };

/** A service descriptor with its implementation. */
export interface ServedService {
  readonly desc: DescService;
  readonly methods: readonly ServedMethod[];
}

/** What a service is beyond its functions. */
export interface ServeOptions<S extends DescService> {
  /** Where an answer changes the HTTP status or headers. */
  readonly plainReplies?: PlainReplies<S>;
  readonly bodyChecks?: BodyChecks<S>;
  /** Every rpc is called by probes, not only those with the option `probe`. */
  readonly isProbe?: boolean;
}

/** Joins a descriptor with its implementation. */
export function serve<S extends DescService>(
  desc: S,
  implementation: Implementation<S>,
  { plainReplies = {}, bodyChecks = {}, isProbe = false }: ServeOptions<S> = {},
): ServedService {
  const functions = implementation as Record<string, ServedMethod["invoke"]>;
  const replies = plainReplies as Record<string, ServedMethod["plainReply"]>;
  const checks = bodyChecks as Record<string, BodyCheck | undefined>;
  return {
    desc,
    methods: desc.methods.map((method) => {
      const invoke = functions[method.localName];
      if (invoke === undefined) {
        throw new Error(`${desc.typeName}.${method.name} has no implementation`);
      }
      return {
        desc: method,
        invoke,
        plainReply: replies[method.localName],
        beforeBody: checks[method.localName],
        isProbe: isProbe || getOption(method, probe),
        identifiesCaller: getOption(method, identifies_caller),
      };
    }),
  };
}
