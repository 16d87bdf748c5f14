/** Dialing side of a handshake. Both nodes prove their identities, and that they belong to the same network. */
import { randomBytes } from "node:crypto";
import { type HandshakeResponse, type KnownPeer, PeerService } from "../../../gen/gatehouse/peer/v1/peer_pb.js";
import { RpcError } from "../../rpc/errors.js";
import type { PeerClient } from "./client.js";
import { type EndpointPolicy, parseConnectionString, parseEndpoint } from "../address-book/endpoint.js";
import { type Self, signNodeInfo, verifyNodeInfo } from "./node-info.js";
import type { ProvenPeer, StatusReader } from "../address-book/status.js";

export interface HandshakeDeps {
  readonly self: Self;
  readonly client: Pick<PeerClient, "call" | "identityOf">;
  readonly policy: EndpointPolicy;
  readonly readStatus: StatusReader;
  /** Called when another process uses this node's own key, with its endpoint. */
  readonly onKeyElsewhere: (endpoint: string) => void;
}

/**
 * Performs a handshake with the node at an endpoint.
 *
 * @param genesisHash genesis hash of this node's network.
 * @returns the identity and status that the node proved, and the peers that it knows.
 * @throws CallError
 * @throws RpcError if the node's statements are invalid.
 */
export async function performHandshake(
  { self, client, policy, readStatus, onKeyElsewhere }: HandshakeDeps,
  endpoint: string,
  genesisHash: string,
): Promise<{ readonly proven: ProvenPeer; readonly peers: readonly KnownPeer[] }> {
  const challenged = await client.call(endpoint, PeerService.method.getChallenge, {});
  if (challenged.genesisHash !== genesisHash) {
    throw new RpcError("PERMISSION_DENIED", "The peer belongs to another network: its genesis differs.");
  }
  if (client.identityOf(endpoint) === self.key.publicKey) {
    if (self.instanceId.equals(challenged.instanceId)) {
      throw new RpcError("PERMISSION_DENIED", "The peer URL is this node's own address; add a different one.");
    }
    // Continue with the handshake. The other process rejects it, and thereby learns of this process.
    onKeyElsewhere(endpoint);
  }
  const challenge = randomBytes(32);
  const response = await client.call(endpoint, PeerService.method.handshake, {
    nodeInfo: signNodeInfo(self, genesisHash, challenged.challenge),
    challenge,
  });
  return { proven: read(response, client.identityOf(endpoint)), peers: response.peers };

  function read({ nodeInfo: signed }: HandshakeResponse, tlsIdentity: string | undefined): ProvenPeer {
    const { identity, status, ...nodeInfo } = verifyNodeInfo(signed);
    if (!challenge.equals(nodeInfo.challenge) || nodeInfo.genesisHash !== genesisHash) {
      throw new RpcError("INVALID_SIGNATURE", "The peer's node info was created for another node.");
    }
    if (policy.tls && tlsIdentity !== identity) {
      throw new RpcError("INVALID_SIGNATURE", `The peer claims to be ${identity}, but its TLS key is another one.`);
    }
    if (status === undefined) {
      throw new RpcError("INVALID_REQUEST", "The peer does not report its latest block.");
    }
    return {
      identity,
      connectionString: parseConnectionString(nodeInfo.connectionString),
      announced: parseEndpoint(nodeInfo.endpoint, policy),
      instanceId: Buffer.from(nodeInfo.instanceId).toString("hex"),
      status: readStatus(status),
    };
  }
}
