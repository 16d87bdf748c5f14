/**
 * Responding side of a handshake. The handshake does not verify the caller. This node dials back, at the endpoint that
 * the caller names, and verifies the key it finds there.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandshakeRequest, HandshakeResponseSchema, NodeInfo } from "../../../gen/gatehouse/peer/v1/peer_pb.js";
import { RpcError } from "../../rpc/errors.js";
import type { Challenges } from "./challenges.js";
import type { DialRateLimit } from "./dial-rate-limit.js";
import type { Dialer } from "./dialer.js";
import type { DuplicateIdentities } from "./duplicate-identities.js";
import { checkHost, parseConnectionString, parseEndpoint } from "../address-book/endpoint.js";
import { callableEndpoint, maxGossipedPeers } from "./gossip.js";
import type { HandshakeDeps } from "./handshake.js";
import type { ProvenPeer } from "../address-book/status.js";
import { signNodeInfo, verifyNodeInfo } from "./node-info.js";
import { isUnverified } from "../address-book/peer.js";
import type { PeerBook } from "../address-book/peer-book.js";

export interface HandshakeResponderDeps extends Omit<HandshakeDeps, "client"> {
  readonly book: PeerBook;
  readonly dialer: Pick<Dialer, "dial">;
  readonly dialRateLimit: Pick<DialRateLimit, "tryDialBack">;
  readonly challenges: Challenges;
  readonly duplicates: Pick<DuplicateIdentities, "record">;
  /** Called when a verified peer has reported its status. */
  readonly onStatus: () => Promise<void>;
}

export interface HandshakeResponder {
  /**
   * Responds to a handshake.
   *
   * @param genesisHash genesis hash of this node's network.
   * @param tlsIdentity identity that the caller proved by TLS.
   * @throws RpcError
   */
  respond(
    request: HandshakeRequest,
    genesisHash: string,
    tlsIdentity: string | undefined,
  ): MessageInitShape<typeof HandshakeResponseSchema>;
  /**
   * Dials a caller back at once. Does nothing if 8 such dials are in progress, if the rate limit is exceeded, or if the
   * peer has a current handshake. Later ticks then dial the endpoint.
   */
  dialBack(endpoint: string): Promise<void>;
}

const maxDialBacks = 8;
const challengeBytes = { min: 16, max: 64 };

export function createHandshakeResponder(deps: HandshakeResponderDeps): HandshakeResponder {
  const { self, book, dialer, policy, dialRateLimit, onStatus } = deps;
  let dialBacksRunning = 0;

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
      book.recordRejection(endpoint, rejection.message);
    }
  }

  async function dialBack(endpoint: string): Promise<void> {
    const hasHandshake = book.get(endpoint)?.handshaken === true;
    if (!hasHandshake && dialBacksRunning < maxDialBacks && dialRateLimit.tryDialBack(endpoint)) {
      dialBacksRunning++;
      await dialer.dial(endpoint, maxGossipedPeers);
      dialBacksRunning--;
    }
  }

  function accept({ identity, announced, status }: ProvenPeer): void {
    const peer = book.verified(identity);
    if (peer?.online === true) {
      book.recordStatus(peer.endpoint, status);
      void onStatus();
    } else if (book.add(announced, "handshake")) {
      void dialBack(announced);
    }
  }

  return {
    respond({ nodeInfo: signed, challenge }, genesisHash, tlsIdentity) {
      if (challenge.length < challengeBytes.min || challenge.length > challengeBytes.max) {
        throw new RpcError("INVALID_REQUEST", "The challenge must have 16 to 64 bytes.");
      }
      const nodeInfo = verifyNodeInfo(signed);
      try {
        accept(checkNodeInfo(deps, nodeInfo, genesisHash, tlsIdentity));
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
    },
    dialBack,
  };
}

/**
 * Checks a node info, and returns the identity and status that it proves.
 *
 * @throws RpcError
 */
function checkNodeInfo(
  deps: HandshakeResponderDeps,
  nodeInfo: NodeInfo,
  genesisHash: string,
  tlsIdentity: string | undefined,
): ProvenPeer {
  const { self, book, policy, challenges, readStatus } = deps;
  const { identity, status } = nodeInfo;
  challenges.markUsed(nodeInfo.challenge);
  if (policy.tls && tlsIdentity !== identity) {
    throw new RpcError("INVALID_SIGNATURE", "The identity is not that of the TLS connection.");
  }
  if (nodeInfo.genesisHash !== genesisHash) {
    throw new RpcError("PERMISSION_DENIED", "The caller belongs to another network: its genesis differs.");
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
  const connectionString = parseConnectionString(nodeInfo.connectionString);
  checkHost(connectionString, policy);
  if (status === undefined) {
    throw new RpcError("INVALID_REQUEST", "The caller does not report its latest block.");
  }
  const instanceId = Buffer.from(nodeInfo.instanceId).toString("hex");
  const conflict = book.findIdentityConflict(identity, announced);
  if (conflict !== undefined) {
    if (book.verified(identity)?.instanceId !== instanceId) {
      deps.duplicates.record(identity, announced);
    }
    throw new RpcError("PERMISSION_DENIED", conflict);
  }
  const sender = book.verified(identity) === undefined ? "" : identity;
  return { identity, connectionString, announced, instanceId, status: readStatus(status, sender) };
}
