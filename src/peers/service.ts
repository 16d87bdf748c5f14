/** The peer service: what other nodes may ask of this one. */
import type { PeerService } from "../../gen/gatehouse/peer/v1/peer_pb.js";
import { Failure } from "../rpc/errors.js";
import type { Implementation } from "../rpc/service.js";
import { maxGossipedPeers } from "./handshake/gossip.js";
import type { Doubles } from "./handshake/duplicate-identities.js";
import { createHandshakeResponder, type HandshakeResponderParts } from "./handshake/handshake-responder.js";
import type { BookEntry } from "./address-book/peer.js";
import { createRelayReceiver, type RelayReceiverParts } from "./relay/relay-receiver.js";

export interface PeerServiceParts extends HandshakeResponderParts, RelayReceiverParts {
  /**
   * Hears that a verified peer said how far it is. Resolves when this node has caught up with that, or soon if that
   * takes long, so that the answer says how far it is then.
   */
  readonly onStatus: () => Promise<void>;
  readonly doubles: Doubles;
}

export function createPeerService(parts: PeerServiceParts): Implementation<typeof PeerService> {
  const { self, book, challenges, doubles, readStatus, onStatus } = parts;
  const handshakes = createHandshakeResponder(parts);
  const takeRelayed = createRelayReceiver(parts);

  function needGenesis(): string {
    if (self.genesisHash === undefined) {
      throw new Failure("STATE_NOT_READY", "The node has no genesis block yet.");
    }
    return self.genesisHash;
  }

  /** Some peers; first of all where else the caller's own key is used: it will ask there, and see. */
  function gossipFor(known: BookEntry | undefined, identity = "", most: number) {
    const endpoint = doubles.of(known);
    const double = endpoint === undefined ? [] : [{ endpoint, identity }];
    return [...double, ...book.sample(most - double.length, identity)];
  }

  return {
    getChallenge: () => ({
      ...{ genesisHash: needGenesis(), challenge: challenges.make() },
      instanceId: self.instanceId,
    }),

    handshake: (request, { caller }) => handshakes.respond(request, needGenesis(), caller.identity),

    async exchangeStatus({ status, maxPeers }, { caller }) {
      needGenesis();
      const known = caller.identity === undefined ? undefined : book.verified(caller.identity);
      if (known !== undefined && status !== undefined) {
        if (known.online) {
          book.recordStatus(known.endpoint, readStatus(status, known.identity ?? ""));
          await onStatus();
        } else if (book.add(known.endpoint, "handshake")) {
          void handshakes.dialBack(known.endpoint);
        }
      }
      return {
        status: self.status(),
        knowsCaller: known !== undefined,
        peers: maxPeers === 0 ? [] : gossipFor(known, caller.identity, Math.min(maxPeers, maxGossipedPeers)),
      };
    },

    relayTransactions: async (relayed, { caller }) => ({
      outcomes: await takeRelayed(relayed, caller.address),
    }),
  };
}
