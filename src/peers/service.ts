/** Peer service: the methods that other nodes call. */
import type { PeerService } from "../../gen/gatehouse/peer/v1/peer_pb.js";
import { RpcError } from "../rpc/errors.js";
import type { Implementation } from "../rpc/service.js";
import { maxGossipedPeers } from "./handshake/gossip.js";
import type { DuplicateIdentities } from "./handshake/duplicate-identities.js";
import { createHandshakeResponder, type HandshakeResponderDeps } from "./handshake/handshake-responder.js";
import type { BookEntry } from "./address-book/peer.js";
import { createRelayReceiver, type RelayReceiverDeps } from "./relay/relay-receiver.js";

export interface PeerServiceDeps extends HandshakeResponderDeps, RelayReceiverDeps {
  /**
   * Called when a verified peer reported its status. Resolves when this node has caught up with it, or after a short
   * time. The response then contains the state that this node has reached.
   */
  readonly onStatus: () => Promise<void>;
  readonly duplicates: DuplicateIdentities;
}

export function createPeerService(deps: PeerServiceDeps): Implementation<typeof PeerService> {
  const { self, book, challenges, duplicates, readStatus, onStatus } = deps;
  const handshakes = createHandshakeResponder(deps);
  const acceptRelayed = createRelayReceiver(deps);

  function requireGenesis(): string {
    if (self.genesisHash === undefined) {
      throw new RpcError("STATE_NOT_READY", "The node has no genesis block yet.");
    }
    return self.genesisHash;
  }

  /**
   * Returns some peers. If another process uses the caller's own key, its endpoint comes first, so that the caller can
   * dial it and detect the duplicate.
   */
  function gossipFor(entry: BookEntry | undefined, identity = "", limit: number) {
    const endpoint = duplicates.endpointOf(entry);
    const duplicate = endpoint === undefined ? [] : [{ endpoint, identity }];
    return [...duplicate, ...book.sample(limit - duplicate.length, identity)];
  }

  return {
    getChallenge: () => ({
      genesisHash: requireGenesis(),
      challenge: challenges.create(),
      instanceId: self.instanceId,
    }),

    handshake: (request, { caller }) => handshakes.respond(request, requireGenesis(), caller.identity),

    async exchangeStatus({ status, maxPeers }, { caller }) {
      requireGenesis();
      const entry = caller.identity === undefined ? undefined : book.verified(caller.identity);
      if (entry !== undefined && status !== undefined) {
        if (entry.online) {
          book.recordStatus(entry.endpoint, readStatus(status, entry.identity ?? ""));
          await onStatus();
        } else if (book.add(entry.endpoint, "handshake")) {
          void handshakes.dialBack(entry.endpoint);
        }
      }
      return {
        status: self.status(),
        knowsCaller: entry !== undefined,
        peers: maxPeers === 0 ? [] : gossipFor(entry, caller.identity, Math.min(maxPeers, maxGossipedPeers)),
      };
    },

    relayTransactions: async (request, { caller }) => ({
      outcomes: await acceptRelayed(request, caller.address),
    }),
  };
}
