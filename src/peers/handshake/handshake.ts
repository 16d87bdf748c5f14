/**
 * Dialing side of a handshake, in which both nodes prove their identities and that they belong to the same network. Each
 * sends a node info: a statement about itself. Its signature covers a challenge of the other node, which prevents
 * replays.
 */
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { randomBytes } from "node:crypto";
import {
  type KnownPeer,
  type NodeInfo,
  NodeInfoSchema,
  PeerService,
  type SignedNodeInfo,
  type SignedNodeInfoSchema,
  type StatusSchema,
} from "../../../gen/gatehouse/peer/v1/peer_pb.js";
import { verifyEd25519 } from "../../base/crypto/ed25519.js";
import { hex32 } from "../../base/crypto/hash.js";
import { RpcError } from "../../rpc/errors.js";
import { type EndpointPolicy, parseConnectionString, parseEndpoint } from "../address-book/endpoint.js";
import { peerReasons } from "../address-book/peer-reasons.js";
import type { ProvenPeer, StatusReader } from "../address-book/status.js";
import type { PeerClient } from "./client.js";

/** Description of this node for other nodes. */
export interface Self {
  readonly key: {
    /** Public key: 0x and 64 lowercase hex digits. */
    readonly publicKey: string;
    /** Signs bytes with Ed25519. Returns 64 bytes. */
    sign(bytes: Uint8Array): Uint8Array;
  };
  /** Hash of block 0; undefined if there is no chain yet. Handshakes require a chain. */
  readonly genesisHash: string | undefined;
  readonly version: string;
  /** Random bytes that identify this process. */
  readonly instanceId: Buffer;
  /** Returns the address for clients. */
  connectionString(): string;
  /** Returns the endpoint for other nodes. */
  endpoint(): string;
  status(): MessageInitShape<typeof StatusSchema>;
}

/** Prefix of the signed bytes, so that the signature is valid for nothing else that a node signs. */
const signedPrefix = Buffer.from("gatehouse handshake v1\0", "latin1");
const maxNodeInfoBytes = 4_096;

/** Creates the signed node info of this node, for the node that sent the challenge. */
export function signNodeInfo(
  self: Self,
  genesisHash: string,
  challenge: Uint8Array,
): MessageInitShape<typeof SignedNodeInfoSchema> {
  const nodeInfo = toBinary(
    NodeInfoSchema,
    create(NodeInfoSchema, {
      challenge,
      identity: self.key.publicKey,
      genesisHash,
      connectionString: self.connectionString(),
      endpoint: self.endpoint(),
      status: self.status(),
      version: self.version,
      instanceId: self.instanceId,
    }),
  );
  return { nodeInfo, signature: self.key.sign(Buffer.concat([signedPrefix, nodeInfo])) };
}

/**
 * Decodes a node info and verifies the signature by its identity. The caller must check that the challenge is fresh.
 *
 * @throws RpcError INVALID_REQUEST, INVALID_SIGNATURE
 */
export function verifyNodeInfo(signed: SignedNodeInfo | undefined): NodeInfo {
  if (signed === undefined || signed.nodeInfo.length > maxNodeInfoBytes) {
    throw new RpcError("INVALID_REQUEST", "The node info is missing or too long.");
  }
  let nodeInfo: NodeInfo;
  try {
    nodeInfo = fromBinary(NodeInfoSchema, signed.nodeInfo);
  } catch {
    throw new RpcError("INVALID_REQUEST", "The node info cannot be decoded.");
  }
  const { identity } = nodeInfo;
  const bytes = Buffer.concat([signedPrefix, signed.nodeInfo]);
  if (!hex32.test(identity) || !verifyEd25519(identity, bytes, signed.signature)) {
    throw new RpcError("INVALID_SIGNATURE", "The node info is not signed by its own identity.");
  }
  return nodeInfo;
}

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
    throw new RpcError("PERMISSION_DENIED", peerReasons.otherNetwork(challenged.genesisHash, genesisHash));
  }
  if (client.identityOf(endpoint) === self.key.publicKey) {
    if (self.instanceId.equals(challenged.instanceId)) {
      throw new RpcError("PERMISSION_DENIED", peerReasons.ownAddress());
    }
    // Continue with the handshake. The other process rejects it, and thereby learns of this process.
    onKeyElsewhere(endpoint);
  }
  const challenge = randomBytes(32);
  const response = await client.call(endpoint, PeerService.method.handshake, {
    nodeInfo: signNodeInfo(self, genesisHash, challenged.challenge),
    challenge,
  });
  const { identity, status, ...nodeInfo } = verifyNodeInfo(response.nodeInfo);
  if (!challenge.equals(nodeInfo.challenge) || nodeInfo.genesisHash !== genesisHash) {
    throw new RpcError("INVALID_SIGNATURE", "The peer's node info was created for another node.");
  }
  if (policy.tls && client.identityOf(endpoint) !== identity) {
    throw new RpcError("INVALID_SIGNATURE", `The peer claims to be ${identity}, but its TLS key is another one.`);
  }
  if (status === undefined) {
    throw new RpcError("INVALID_REQUEST", "The peer does not report its latest block.");
  }
  const proven: ProvenPeer = {
    identity,
    connectionString: parseConnectionString(nodeInfo.connectionString),
    announced: parseEndpoint(nodeInfo.endpoint, policy),
    instanceId: Buffer.from(nodeInfo.instanceId).toString("hex"),
    status: readStatus(status),
  };
  return { proven, peers: response.peers };
}
