/**
 * Where the protocols meet the edge. A protocol says who arrived and for which rpc; the edge lets it in or throws the
 * Failure that turns it away. Every protocol asks the same gate, so none can forget a check; and what it lets in is a
 * lease that ends with the request's own end, so none can forget to give it back.
 */
import type { Caching } from "../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { type RpcError, toRpcError } from "./errors.js";
import type { Caller, ServedMethod, ServedService } from "./service.js";

/** A protocol, for the log and the metrics. */
export type Protocol = "http" | "grpc" | "connect" | "grpc-web" | "json-rpc" | "mcp";

/** A connection that was let in. */
export interface Connection {
  /** Address of the other end; empty over a Unix socket. */
  readonly remoteAddress: string;
  /** The identity that the other end proved by TLS; undefined where it did not have to. */
  provenIdentity: string | undefined;
  /**
   * Counts what serves nobody, such as streams that are reset as soon as they are open: too much of it, and the
   * connection is cut.
   */
  penalize(count?: number): void;
  /** It is closed. */
  end(): void;
}

/** A request or a stream, as the edge sees it. */
export interface Arrival {
  /** Names the request in the log and in the response. */
  readonly requestId: string;
  readonly connection: Connection;
  /** A request header (or gRPC metadata entry) by lower-case name; several of a name are joined with commas. */
  header(name: string): string | undefined;
  /** Calls back once: when the answer has been handed to the system as a whole, or the caller has gone. */
  onClose(listener: () => void): void;
  /** Ends it at once, whatever is under way. */
  abort(): void;
}

/** What was let in: it holds its place until the arrival is closed. */
export interface Permit {
  /**
   * Returns the caller, as an rpc is to know it: without an identity for one that does not identify its callers, unless
   * the connection has proved it.
   *
   * @param method undefined for what is no rpc.
   * @throws Failure INVALID_SIGNATURE for an rpc that identifies its callers, where the identity is not proved.
   */
  callerOf(method: ServedMethod | undefined): Caller;
  /** Headers that the response gets: a flat list of names and values. They are right once it is ready. */
  readonly headers: readonly string[];
  /**
   * What the call waits for before it is made; undefined where that is nothing. It rejects with the Failure that the call
   * ends with.
   */
  readonly ready?: Promise<void> | undefined;
  /** The rpc; a protocol that names it in the body sets it when the body was read. */
  method: ServedMethod | undefined;
  /** An answer was decided on, and with which failure if it failed: counted and logged when the lease ends. */
  recordOutcome(failure?: RpcError): void;
  /**
   * Takes room for bytes of the request, until the lease ends.
   *
   * @throws Failure OVERLOADED when the connection, the address or the node has no room.
   */
  reserveRequestBytes(bytes: number): void;
  /**
   * Takes room for bytes that wait to be sent, until they are discharged or the lease ends; who does not read them in
   * time is cut.
   *
   * @param weightBytes what the answer weighs for the caller's rate, where the bytes are shared with other answers.
   * @throws Failure OVERLOADED as {@link reserveRequestBytes}.
   */
  reserveResponseBytes(bytes: number, weightBytes?: number): void;
  /** Gives back room of bytes that were sent. */
  releaseResponseBytes(bytes: number): void;
  /** Gives the place back now. Nothing happens the second time. */
  release(): void;
}

/** The edge, as the protocols see it. */
export interface Gate {
  /**
   * Lets a connection in; undefined when it is turned away.
   *
   * @param remoteAddress address of the other end; empty over a Unix socket.
   * @param cut closes it at once.
   */
  connect(remoteAddress: string, cut: () => void): Connection | undefined;
  /**
   * Lets a request or a stream in.
   *
   * @param method the rpc asked for; undefined where the request names none that exists, or not yet.
   * @throws Failure when it is turned away.
   */
  admit(arrival: Arrival, protocol: Protocol, method: ServedMethod | undefined): Permit;
}

/** Names the states that answers are made of. */
export interface StateTags {
  /**
   * The weak entity tag, with its quotes, of what answers would be made of now; it is another one as soon as any of them
   * may be another. Undefined while there is no such thing.
   */
  tagOf(madeOf: Caching): string | undefined;
}

/** What every protocol is built from. */
export interface ProtocolDeps {
  readonly services: readonly ServedService[];
  readonly gate: Gate;
  /** Left out where answers are not made of a state that has a name: then no cache keeps any. */
  readonly stateTags?: StateTags;
  /** Most bytes of answers that are kept until the state is another one; a MiB when left out. */
  readonly keptAnswerBytes?: number;
  /** Hears of every exception that the caller is told nothing about. */
  readonly onInternalError: (error: unknown, requestId: string) => void;
}

/** What the caller is told of whatever was thrown. What has no name of its own in the catalogue is reported first. */
export function toReportedError(
  thrown: unknown,
  requestId: string,
  { onInternalError }: Pick<ProtocolDeps, "onInternalError">,
): RpcError {
  const failure = toRpcError(thrown);
  if (failure !== thrown) {
    onInternalError(thrown, requestId);
  }
  return failure;
}
