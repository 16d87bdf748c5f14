/**
 * The answering side of a handshake. A caller is not verified by it: this node dials back, at the endpoint that the
 * caller names, and believes what it finds there.
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
  readonly pace: Pick<DialRateLimit, "takeDialBack">;
  readonly challenges: Challenges;
  readonly doubles: Pick<DuplicateIdentities, "saw">;
  /** Hears that a verified peer said how far it is. */
  readonly onStatus: () => Promise<void>;
}

export interface HandshakeResponder {
  /**
   * @param genesisHash of this node's network.
   * @param tlsIdentity what the caller proved by TLS.
   * @throws Failure
   */
  respond(
    request: HandshakeRequest,
    genesisHash: string,
    tlsIdentity: string | undefined,
  ): MessageInitShape<typeof HandshakeResponseSchema>;
  /**
   * Dials a caller back. Where too many are dialed back already, or it was dialed a moment ago, or its endpoint is that of
   * somebody who is in touch, it is for the next ticks.
   */
  dialBack(endpoint: string): Promise<void>;
}

const maxDialedBack = 8;
const challengeBytes = { least: 16, most: 64 };

export function createHandshakeResponder(deps: HandshakeResponderDeps): HandshakeResponder {
  const { self, book, dialer, policy, pace, onStatus } = deps;
  let dialedBack = 0;

  /** What was refused is shown, unless the address is that of a peer who has nothing to do with it. */
  function showRefusal(nodeInfo: NodeInfo, refusal: RpcError): void {
    const endpoint = callableEndpoint(nodeInfo.endpoint, policy);
    if (endpoint === undefined || endpoint === self.endpoint()) {
      return;
    }
    const known = book.get(endpoint);
    if ((known === undefined || isUnverified(known)) && book.add(endpoint, "handshake")) {
      book.recordRefusal(endpoint, refusal.message);
    }
  }

  async function dialBack(endpoint: string): Promise<void> {
    const isInTouch = book.get(endpoint)?.handshaken === true;
    if (!isInTouch && dialedBack < maxDialedBack && pace.takeDialBack(endpoint)) {
      dialedBack++;
      await dialer.dial(endpoint, maxGossipedPeers);
      dialedBack--;
    }
  }

  function take({ identity, announced, status }: ProvenPeer): void {
    const known = book.verified(identity);
    if (known?.online === true) {
      book.recordStatus(known.endpoint, status);
      void onStatus();
    } else if (book.add(announced, "handshake")) {
      void dialBack(announced);
    }
  }

  return {
    respond({ nodeInfo: signed, challenge }, genesisHash, tlsIdentity) {
      if (challenge.length < challengeBytes.least || challenge.length > challengeBytes.most) {
        throw new RpcError("INVALID_REQUEST", "The challenge must have 16 to 64 bytes.");
      }
      const nodeInfo = verifyNodeInfo(signed);
      try {
        take(checkNodeInfo(deps, nodeInfo, genesisHash, tlsIdentity));
      } catch (error) {
        if (error instanceof RpcError) {
          showRefusal(nodeInfo, error);
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

/** What a node info says, as far as it can be believed. */
function checkNodeInfo(
  deps: HandshakeResponderDeps,
  nodeInfo: NodeInfo,
  genesisHash: string,
  tlsIdentity: string | undefined,
): ProvenPeer {
  const { self, book, policy, challenges, readStatus } = deps;
  const { identity, status } = nodeInfo;
  challenges.spend(nodeInfo.challenge);
  if (policy.tls && tlsIdentity !== identity) {
    throw new RpcError("INVALID_SIGNATURE", "The identity is not that of the TLS connection.");
  }
  if (nodeInfo.genesisHash !== genesisHash) {
    throw new RpcError("PERMISSION_DENIED", "The caller belongs to another network: its genesis differs.");
  }
  if (identity === self.key.publicKey) {
    if (self.instanceId.equals(nodeInfo.instanceId)) {
      throw new RpcError("PERMISSION_DENIED", "It is this node itself.");
    }
    deps.onKeyElsewhere(nodeInfo.endpoint);
    throw new RpcError("PERMISSION_DENIED", "Another process uses this node's own key.");
  }
  const announced = parseEndpoint(nodeInfo.endpoint, policy);
  if (announced === self.endpoint()) {
    throw new RpcError("INVALID_REQUEST", "The caller names this node's own address as its endpoint.");
  }
  checkHost(announced, policy);
  const connectionString = parseConnectionString(nodeInfo.connectionString);
  checkHost(connectionString, policy);
  if (status === undefined) {
    throw new RpcError("INVALID_REQUEST", "The caller does not say how far it is.");
  }
  const instanceId = Buffer.from(nodeInfo.instanceId).toString("hex");
  const held = book.whyHeldElsewhere(identity, announced);
  if (held !== undefined) {
    if (book.verified(identity)?.instanceId !== instanceId) {
      deps.doubles.saw(identity, announced);
    }
    throw new RpcError("PERMISSION_DENIED", held);
  }
  const from = book.verified(identity) === undefined ? "" : identity;
  return { identity, connectionString, announced, instanceId, status: readStatus(status, from) };
}
