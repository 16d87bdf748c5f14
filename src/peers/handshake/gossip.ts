/** Gossip: what peers say of other peers goes into the address book unverified. */
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

/** Most peers of one answer, in either direction. */
export const maxGossipedPeers = 50;

/** Builds the function that takes the peers of one answer. Addresses that this node would not call are passed over. */
export function createGossipIntake({ self, book, policy }: GossipDeps): (peers: readonly KnownPeer[]) => void {
  function take({ endpoint: text, identity }: KnownPeer): void {
    const endpoint = callableEndpoint(text, policy);
    if (
      endpoint !== undefined &&
      endpoint !== self.endpoint() &&
      // Whoever has this node's own key is to be found out.
      book.verified(identity) === undefined
    ) {
      book.add(endpoint, "gossip");
    }
  }
  return (peers) => peers.slice(0, maxGossipedPeers).forEach(take);
}

/** The one form of an endpoint that somebody else names; undefined for one that this node would not call. */
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
