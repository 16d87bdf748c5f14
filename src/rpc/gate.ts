/**
 * Where the protocols meet the edge. A protocol says who arrived and for which rpc; the edge lets it in or throws the
 * Failure that turns it away. Every protocol asks the same gate, so none can forget a check.
 */
import { type Failure, toFailure } from "./errors.js";
import type { Caller, ServedMethod, ServedService } from "./service.js";

/** What a protocol knows of a request before anything is done for it. */
export interface Arrival {
  /** Names the request in the log and in the response. */
  readonly requestId: string;
  /** The protocol, for the log. */
  readonly protocol: "http" | "grpc" | "connect" | "grpc-web" | "json-rpc" | "mcp";
  /** Address of the socket's other end; empty when the socket is gone already. */
  readonly remoteAddress: string;
  /** A request header (or gRPC metadata entry) by lower-case name; several of a name are joined with commas. */
  header(name: string): string | undefined;
  /** The identity that the other end proved by TLS; undefined where it did not have to. */
  readonly provenIdentity?: string | undefined;
  /** The rpc asked for; undefined where the request named none that exists. */
  readonly method: ServedMethod | undefined;
}

/** A request that was let in. */
export interface Admission {
  readonly arrival: Arrival;
  /** When it arrived, on the clock of `performance.now()`. */
  readonly startMs: number;
  readonly caller: Caller;
  /** Headers that the response gets: a flat list of names and values. */
  readonly headers: readonly string[];
}

/** The edge, as the protocols see it. */
export interface Gate {
  /**
   * Lets a request in and says who calls.
   *
   * @throws Failure when the request is turned away; then there is nothing to settle.
   */
  admit(arrival: Arrival): Admission;
  /** Tells that a request which was let in is answered, and with which failure if it failed. Once for each admission. */
  settle(admission: Admission, failure?: Failure): void;
}

/** What every protocol is built from. */
export interface ProtocolParts {
  readonly services: readonly ServedService[];
  readonly gate: Gate;
  /** Names a request, for the log and the response. */
  readonly nextRequestId: () => string;
  /** Hears of every exception that the caller is told nothing about. */
  readonly onInternalError: (error: unknown, requestId: string) => void;
}

/** What the caller is told of whatever was thrown. What has no name of its own in the catalogue is reported first. */
export function explain(
  thrown: unknown,
  requestId: string,
  { onInternalError }: Pick<ProtocolParts, "onInternalError">,
): Failure {
  const failure = toFailure(thrown);
  if (failure !== thrown) {
    onInternalError(thrown, requestId);
  }
  return failure;
}
