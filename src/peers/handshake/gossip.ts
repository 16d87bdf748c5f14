/** Adds peers that other peers report to the address book, as unverified gossip. */
import type { KnownPeer } from "../../../gen/gatehouse/peer/v1/peer_pb.js";
import { RpcError } from "../../rpc/errors.js";
import { checkHost, type EndpointPolicy, parseEndpoint } from "../address-book/endpoint.js";
import type { Self } from "./node-info.js";
import type { PeerBook } from "../address-book/peer-book.js";

export interface GossipDeps {
  readonly self: Pick<Self, "endpoint">;
  readonly book: Pick<PeerBook, "add" | "verified">;
  readonly policy: EndpointPolicy;
}

/** Limit on the peers in one response, sent or received. */
export const maxGossipedPeers = 50;

/** Creates the function that accepts the peers of one response. Endpoints that this node would not call are ignored. */
export function createGossipIntake({ self, book, policy }: GossipDeps): (peers: readonly KnownPeer[]) => void {
  function accept({ endpoint: text, identity }: KnownPeer): void {
    const endpoint = callableEndpoint(text, policy);
    if (
      endpoint !== undefined &&
      endpoint !== self.endpoint() &&
      // Verified peers need no gossip. This node's own identity is never among them, so a duplicate of it gets dialed
      // and detected.
      book.verified(identity) === undefined
    ) {
      book.add(endpoint, "gossip");
    }
  }
  return (peers) => peers.slice(0, maxGossipedPeers).forEach(accept);
}

/** Normalizes an endpoint that another node named; undefined if this node would not call it. */
export function callableEndpoint(text: string, policy: EndpointPolicy): string | undefined {
  try {
    const endpoint = parseEndpoint(text, policy);
    checkHost(endpoint, policy);
    return endpoint;
  } catch (error) {
    if (error instanceof RpcError) {
      return undefined;
    }
    throw error;
  }
}
