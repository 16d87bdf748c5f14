/** Peer service: the methods that other nodes call. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  HandshakeRequest,
  HandshakeResponseSchema,
  NodeInfo,
  PeerService,
} from "../../gen/gatehouse/peer/v1/peer_pb.js";
import { RpcError } from "../rpc/errors.js";
import type { Implementation } from "../rpc/service.js";
import { callableEndpoint, checkHost, parseConnectionString, parseEndpoint } from "./address-book/endpoint.js";
import { type BookEntry, isUnverified } from "./address-book/peer.js";
import type { PeerBook } from "./address-book/peer-book.js";
import { peerReasons } from "./address-book/peer-reasons.js";
import type { Challenges } from "./handshake/challenges.js";
import type { DialRateLimit } from "./handshake/dial-rate-limit.js";
import { type Dialer, maxGossipedPeers } from "./handshake/dialer.js";
import type { DuplicateIdentities } from "./handshake/duplicate-keys.js";
import { type HandshakeDeps, signNodeInfo, verifyNodeInfo } from "./handshake/handshake.js";
import { createRelayReceiver, type RelayReceiverDeps } from "./relay/relay-receiver.js";

export interface PeerServiceDeps extends Omit<HandshakeDeps, "client">, RelayReceiverDeps {
  readonly book: PeerBook;
  readonly dialer: Pick<Dialer, "dial">;
  readonly dialRateLimit: Pick<DialRateLimit, "tryDialBack">;
  readonly challenges: Challenges;
  readonly duplicates: DuplicateIdentities;
  /**
   * Called when a verified peer reported its status. Resolves when this node has caught up with it, or after a short
   * time. The response then contains the state that this node has reached.
   */
  readonly onStatus: () => Promise<void>;
}

const challengeBytes = { min: 16, max: 64 };

export function createPeerService(deps: PeerServiceDeps): Implementation<typeof PeerService> {
  const { self, book, dialer, policy, dialRateLimit, challenges, duplicates, readStatus, onStatus } = deps;
  const acceptRelayed = createRelayReceiver(deps);

  function requireGenesis(): string {
    if (self.genesisHash === undefined) {
      throw new RpcError("STATE_NOT_READY", "The node has no genesis block yet.");
    }
    return self.genesisHash;
  }

  /**
   * Adds a caller to the address book and dials it back at once. The dial waits for a later tick if the rate limit is
   * exceeded, or if the peer has a current handshake.
   */
  function dialBack(endpoint: string): void {
    const mayDial = book.add(endpoint, "handshake") && book.get(endpoint)?.handshaken !== true;
    if (mayDial && dialRateLimit.tryDialBack(endpoint)) {
      void dialer.dial(endpoint, maxGossipedPeers);
    }
  }

  /**
   * Responds to a handshake. The handshake does not verify the caller. This node dials back, at the endpoint that the
   * caller names, and verifies the key it finds there.
   */
  function respond(
    { nodeInfo: signed, challenge }: HandshakeRequest,
    tlsIdentity: string | undefined,
  ): MessageInitShape<typeof HandshakeResponseSchema> {
    const genesisHash = requireGenesis();
    if (challenge.length < challengeBytes.min || challenge.length > challengeBytes.max) {
      throw new RpcError("INVALID_REQUEST", "The challenge must have 16 to 64 bytes.");
    }
    const nodeInfo = verifyNodeInfo(signed);
    try {
      const { identity, announced, status } = checkNodeInfo(nodeInfo, genesisHash, tlsIdentity);
      const peer = book.verified(identity);
      if (peer?.online === true) {
        book.recordStatus(peer.endpoint, status);
        void onStatus();
      } else {
        dialBack(announced);
      }
    } catch (error) {
      if (error instanceof RpcError) {
        recordRejection(nodeInfo, error);
      }
      throw error;
    }
    return {
      nodeInfo: signNodeInfo(self, genesisHash, challenge),
      peers: book.sample(maxGossipedPeers, nodeInfo.identity),
    };
  }

  /**
   * Checks a node info, and returns the identity, endpoint and status that it proves.
   *
   * @throws RpcError
   */
  function checkNodeInfo(nodeInfo: NodeInfo, genesisHash: string, tlsIdentity: string | undefined) {
    const { identity, status } = nodeInfo;
    challenges.markUsed(nodeInfo.challenge);
    if (policy.tls && tlsIdentity !== identity) {
      throw new RpcError("INVALID_SIGNATURE", "The identity is not that of the TLS connection.");
    }
    if (nodeInfo.genesisHash !== genesisHash) {
      throw new RpcError("PERMISSION_DENIED", peerReasons.otherNetwork(nodeInfo.genesisHash, genesisHash));
    }
    if (identity === self.key.publicKey) {
      if (self.instanceId.equals(nodeInfo.instanceId)) {
        throw new RpcError("PERMISSION_DENIED", "The caller is this node itself.");
      }
      deps.onKeyElsewhere(nodeInfo.endpoint);
      throw new RpcError("PERMISSION_DENIED", "Another process uses this node's own key.");
    }
    const announced = parseEndpoint(nodeInfo.endpoint, policy);
    if (announced === self.endpoint()) {
      throw new RpcError("INVALID_REQUEST", "The caller announces this node's own address as its endpoint.");
    }
    checkHost(announced, policy);
    checkHost(parseConnectionString(nodeInfo.connectionString), policy);
    if (status === undefined) {
      throw new RpcError("INVALID_REQUEST", "The caller does not report its latest block.");
    }
    const holder = book.verified(identity);
    const conflict = book.findIdentityConflict(identity, announced);
    if (conflict !== undefined) {
      if (holder?.instanceId !== Buffer.from(nodeInfo.instanceId).toString("hex")) {
        duplicates.record(identity, announced);
      }
      throw new RpcError("PERMISSION_DENIED", conflict);
    }
    return { identity, announced, status: readStatus(status, holder === undefined ? "" : identity) };
  }

  /**
   * Records the rejection of a caller in the address book. Does nothing if a verified peer, or one that the operator
   * named, has the endpoint, since that peer may be unrelated.
   */
  function recordRejection(nodeInfo: NodeInfo, rejection: RpcError): void {
    const endpoint = callableEndpoint(nodeInfo.endpoint, policy);
    if (endpoint === undefined || endpoint === self.endpoint()) {
      return;
    }
    const entry = book.get(endpoint);
    if ((entry === undefined || isUnverified(entry)) && book.add(endpoint, "handshake")) {
      book.recordRejection(endpoint, peerReasons.invalidStatement(rejection.message));
    }
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

    handshake: (request, { caller }) => respond(request, caller.identity),

    async exchangeStatus({ status, maxPeers }, { caller }) {
      requireGenesis();
      const entry = caller.identity === undefined ? undefined : book.verified(caller.identity);
      if (entry !== undefined && status !== undefined) {
        if (entry.online) {
          book.recordStatus(entry.endpoint, readStatus(status, entry.identity ?? ""));
          await onStatus();
        } else {
          dialBack(entry.endpoint);
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
