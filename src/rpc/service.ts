/**
 * Services as the protocols see them: descriptors and plain functions. Neither this file nor the functions know the
 * protocol of a call.
 */
import {
  type DescField,
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

export interface Caller {
  /** IP address; IPv4-mapped IPv6 addresses appear as IPv4. */
  readonly address: string;
  /** Ed25519 public key that the caller proved to hold, 0x and 64 lowercase hex digits; undefined if anonymous. */
  readonly identity: string | undefined;
}

export interface Call {
  readonly caller: Caller;
  /** Signal that aborts when the caller disconnects or the deadline passes. */
  readonly signal: AbortSignal;
}

/**
 * Returns the call with another caller, for protocols whose requests name their rpcs in the body.
 *
 * @param caller the caller, as the named rpc may know it.
 */
export function withCaller(call: Call, caller: Caller): Call {
  return {
    caller,
    get signal() {
      return call.signal;
    },
  };
}

/**
 * Read-only message literal. Implementations can return cached or shared objects, because no protocol modifies them.
 */
export type Literal<T> = T extends string | number | bigint | boolean | undefined | Uint8Array
  ? T
  : { readonly [K in keyof T]: Literal<T[K]> };

/**
 * Response of a unary function, as a literal. Functions that wait for nothing return the literal itself, which saves a
 * promise. Omitted fields have their defaults.
 */
export type RpcResponse<O extends DescMessage> = Literal<MessageInitShape<O>> | Promise<Literal<MessageInitShape<O>>>;

/**
 * Lifetime of a response in caches:
 *
 * - `immutable`: never changes, and is the same for every caller.
 * - `state`: until a block changes the state; the default.
 * - `no-store`: not cacheable, because not only blocks change the response.
 */
export type CacheLifetime = "immutable" | "state" | "no-store";

const lifetimes = new WeakMap<object, CacheLifetime>();

/** Sets the lifetime of a response and returns the response, for rpcs whose responses differ in lifetime. */
export function withCacheLifetime<T extends object>(response: T, lifetime: CacheLifetime): T {
  lifetimes.set(response, lifetime);
  return response;
}

export function lifetimeOf(response: object): CacheLifetime {
  return lifetimes.get(response) ?? "state";
}

type MethodFunction<M> =
  M extends DescMethodUnary<infer I, infer O>
    ? (request: MessageShape<I>, call: Call) => RpcResponse<O>
    : M extends DescMethodServerStreaming<infer I, infer O>
      ? (request: MessageShape<I>, call: Call) => AsyncIterable<Literal<MessageInitShape<O>>>
      : M extends DescMethodBiDiStreaming<infer I, infer O>
        ? (requests: AsyncIterable<MessageShape<I>>, call: Call) => AsyncIterable<Literal<MessageInitShape<O>>>
        : never;

/** Functions of a service, one per rpc. A missing or misspelled function is a compile-time error. */
export type Implementation<S extends DescService> = {
  readonly [K in keyof S["method"]]: MethodFunction<S["method"][K]>;
};

/** Status and headers of a plain HTTP response, besides its body. */
export interface PlainReply {
  readonly status: number;
  /** Headers, a flat list of names and values. */
  readonly headers?: readonly string[];
}

/** Functions from a response to its {@link PlainReply}, for rpcs whose responses change the HTTP status or headers. */
export type PlainReplies<S extends DescService> = {
  readonly [K in keyof S["method"]]?: S["method"][K] extends DescMethodUnary<DescMessage, infer O>
    ? (response: Literal<MessageInitShape<O>>) => PlainReply
    : never;
};

/** Rpc with its function, without static types, as the protocols use it. */
export interface ServedMethod {
  readonly desc: DescMethod;
  /**
   * Function of the rpc. A unary function returns a message or a promise; a streaming function returns an async
   * iterable of messages. The argument is a message, or an async iterable of messages if the client streams.
   */
  readonly invoke: (request: object, call: Call) => object;
  readonly plainReply: ((response: object) => PlainReply) | undefined;
  readonly beforeBody: BodyCheck | undefined;
  /** Marks an rpc for health probes: never rate limited, and served under overload. */
  readonly isProbe: boolean;
  /** Marks an rpc that reads the headers which prove an identity; other rpcs ignore these headers. */
  readonly identifiesCaller: boolean;
}

/**
 * Rejects a call before its body is read, by throwing the RpcError of the call.
 *
 * @param contentLength announced length of the body; 0 if not announced.
 */
export type BodyCheck = (contentLength: number, caller: Caller) => void;

/** Checks for rpcs with large requests that are often rejected because of their caller or size. */
export type BodyChecks<S extends DescService> = { readonly [K in keyof S["method"]]?: BodyCheck };

/** Returns the full name of an rpc or a field, such as `gatehouse.info.v1.InfoService.GetInfo`. */
export function fullNameOf({ parent, name }: DescMethod | DescField): string {
  return `${parent.typeName}.${name}`;
}

export interface ServedService {
  readonly desc: DescService;
  readonly methods: readonly ServedMethod[];
}

export interface ServeOptions<S extends DescService> {
  readonly plainReplies?: PlainReplies<S>;
  readonly bodyChecks?: BodyChecks<S>;
  /** Marks every rpc as a probe, not only those with the option `probe`. */
  readonly isProbe?: boolean;
}

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
