/**
 * Interface between the protocols and the admission layer. A protocol states which client calls which rpc; the gate
 * admits the request or throws an RpcError. All protocols use the same gate, so none can skip a check. Each admitted
 * request gets a permit that is released when the request ends, so none can leak.
 */
import type { Caching } from "../../gen/gatehouse/annotations/v1/annotations_pb.js";
import type { Flow } from "../base/async/fair-scheduler.js";
import { type Outcome, type RpcError, toRpcError } from "./errors.js";
import type { RequestHeader } from "./request-headers.js";
import type { Caller, ServedMethod, ServedService } from "./service.js";

export type { RequestHeader };

export type Protocol = "http" | "grpc" | "connect" | "grpc-web" | "json-rpc" | "mcp";

export interface Connection {
  /** Address of the other end; empty over a Unix socket. */
  readonly remoteAddress: string;
  /** Identity that the other end proved by TLS; undefined if TLS did not require one. */
  provenIdentity: string | undefined;
  /** Flow of the requests. Its parent is that of the address, which takes turns with other addresses as one. */
  readonly flow: Flow;
  /** Requests that have arrived and are unanswered, admitted or not. */
  readonly unanswered: number;
  /** Limit on the concurrent streams of an HTTP/2 session on this connection. */
  readonly maxStreams: number;
  /**
   * Counts a request from its arrival on, before it is admitted. Returns false if the connection has been closed,
   * because it has too many.
   */
  arrive(): boolean;
  /** Ends a request that {@link arrive} has counted. */
  leave(): void;
  /** Counts bytes that wait to be parsed; a negative number for bytes that no longer do. May close a connection. */
  wait(bytes: number): void;
  /**
   * Counts penalties for useless work, such as streams that are reset as soon as they open. Too many penalties close
   * the connection, and may ban its address temporarily.
   */
  penalize(count?: number): void;
  end(): void;
}

export interface Arrival {
  /** ID of the request in the log and in the response. */
  readonly requestId: string;
  readonly connection: Connection;
  /** True if the request has a body that has not been read. */
  readonly isIncomplete: boolean;
  /** Returns a request header or gRPC metadata entry by lowercase name; repeated entries are joined with commas. */
  header(name: RequestHeader): string | undefined;
  /** Calls the listener once, when the full response has been handed to the system or the client has disconnected. */
  onClose(listener: () => void): void;
  /** Aborts the request immediately, whatever is in progress. */
  abort(): void;
}

/** Permit of an admitted request: occupies a concurrency slot, once complete, until the arrival closes. */
export interface Permit {
  /**
   * Returns the caller as the rpc may know it. If the rpc does not identify its callers, the identity is only the one
   * that the connection proved.
   *
   * @param method undefined if the request is not for an rpc.
   * @throws RpcError INVALID_SIGNATURE if the rpc identifies its callers and the identity is not proved.
   */
  callerOf(method: ServedMethod | undefined): Caller;
  /** Headers of the response, a flat list of names and values. Final once {@link ready} has resolved. */
  readonly headers: readonly string[];
  /** Promise to wait for before the call runs; undefined if there is no wait. Rejects with the RpcError of the call. */
  readonly ready?: Promise<void> | undefined;
  /** Rpc of the request. A protocol that names the rpc in the body sets this member after it has read the body. */
  method: ServedMethod | undefined;
  /**
   * Records the outcome, once: success, or the error. The outcome is counted and logged when the permit is released.
   */
  recordOutcome(failure?: RpcError): void;
  /**
   * Occupies a slot, now that the request is complete. Does nothing when called again. A client could otherwise occupy
   * all slots with requests that it never completes.
   *
   * @throws RpcError OVERLOADED if no slot is free.
   */
  occupySlot(): void;
  /**
   * Reserves bytes for the request until the permit is released.
   *
   * @throws RpcError OVERLOADED if the connection, the address or the node has no capacity.
   */
  reserveRequestBytes(bytes: number): void;
  /**
   * Reserves bytes that wait to be sent, until they are released or the permit is. A client that reads too slowly is
   * disconnected.
   *
   * @param chargedBytes size that counts for the caller's rate limit, if the bytes are shared with other responses.
   * @throws RpcError OVERLOADED, as {@link reserveRequestBytes} does.
   */
  reserveResponseBytes(bytes: number, chargedBytes?: number): void;
  releaseResponseBytes(bytes: number): void;
  /** Releases the slot now. Does nothing when called again. */
  release(): void;
}

export interface Gate {
  /**
   * Admits a connection; returns undefined if it is rejected.
   *
   * @param remoteAddress address of the other end; empty over a Unix socket.
   * @param abort closes the connection immediately.
   */
  connect(remoteAddress: string, abort: () => void): Connection | undefined;
  /**
   * Admits a request or a stream.
   *
   * @param method the requested rpc; undefined if the request names no existing rpc, or none yet.
   * @throws RpcError if the request is rejected.
   */
  admit(arrival: Arrival, protocol: Protocol, method: ServedMethod | undefined): Permit;
  /**
   * Counts and logs a request that gets its response without admission: preflights, and requests that are not valid
   * HTTP. Such a response costs as little as a rejection.
   */
  record(arrival: Pick<Arrival, "requestId" | "connection" | "header">, outcome: Outcome): void;
}

/** Entity tags of the states from which responses are built. */
export interface StateTags {
  /**
   * Returns the weak entity tag, with quotes, of the current state. The tag changes whenever a response built from that
   * state could change. Undefined while the state has no tag.
   */
  tagOf(cachingRule: Caching): string | undefined;
}

export interface ProtocolDeps {
  readonly services: readonly ServedService[];
  readonly gate: Gate;
  /** Entity tags of the state. Without them, responses are not cacheable. */
  readonly stateTags?: StateTags;
  /** Limit on the bytes of cached responses, which are valid until the state changes. Default: 1 MiB. */
  readonly maxCacheBytes?: number;
  /** Called with every exception whose details are withheld from the caller. */
  readonly onInternalError: (error: unknown, requestId: string) => void;
}

/**
 * Converts any thrown value to the error that the client may see. Reports the value first unless it already is an
 * RpcError.
 */
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
