/**
 * Where the protocols meet the edge. A protocol says who arrived and for which rpc; the edge lets it in or throws the
 * Failure that turns it away. Every protocol asks the same gate, so none can forget a check.
 */
import type { DescMethod } from "@bufbuild/protobuf";
import type { Caller } from "./service.js";

/** What a protocol knows of a request before anything is done for it. */
export interface Arrival {
  /** Address of the socket's other end; empty when the socket is gone already. */
  readonly remoteAddress: string;
  /** A request header (or gRPC metadata entry) by lower-case name; several of a name are joined with commas. */
  header(name: string): string | undefined;
  /** The rpc asked for; undefined where the request named none that exists. */
  readonly method: DescMethod | undefined;
}

/** The edge, as the protocols see it. */
export interface Gate {
  /**
   * Lets a request in and says who calls.
   *
   * @throws Failure when the request is turned away.
   */
  admit(arrival: Arrival): Caller;
  /** Tells that a request was answered, with the reason of its failure if it failed. Once for each `admit`. */
  settle(arrival: Arrival): void;
}
