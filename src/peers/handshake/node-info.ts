/**
 * What nodes say of themselves in a handshake, signed together with a challenge of the node at the other end, so that
 * nobody can say it again.
 */
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  type NodeInfo,
  NodeInfoSchema,
  type SignedNodeInfo,
  type SignedNodeInfoSchema,
  type StatusSchema,
} from "../../../gen/gatehouse/peer/v1/peer_pb.js";
import { verifyEd25519 } from "../../base/crypto/ed25519.js";
import { hex32 } from "../../base/crypto/hash.js";
import { RpcError } from "../../rpc/errors.js";

/** What this node is, to others. */
export interface Self {
  readonly key: SigningKey;
  /** Hash of block 0; undefined while there is none, and then there are no handshakes. */
  readonly genesisHash: string | undefined;
  readonly version: string;
  /** Random bytes of this process. */
  readonly instanceId: Buffer;
  /** Where clients reach it. */
  connectionString(): string;
  /** Where nodes reach it. */
  endpoint(): string;
  status(): MessageInitShape<typeof StatusSchema>;
}

export interface SigningKey {
  /** 0x and 64 lower-case hex digits. */
  readonly publicKey: string;
  /** 64 bytes: the Ed25519 signature. */
  sign(bytes: Uint8Array): Uint8Array;
}

/** What is signed begins with this, so that a signature of it fits nothing else that a node signs. */
const signedPrefix = Buffer.from("gatehouse handshake v1\0", "latin1");
const maxNodeInfoBytes = 4_096;

/** What this node says of itself to whoever gave the challenge. */
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
 * Reads a node info whose signature is that of the identity in it. Whether its challenge is fresh is for the caller to
 * say.
 *
 * @throws Failure INVALID_REQUEST, INVALID_SIGNATURE
 */
export function verifyNodeInfo(signed: SignedNodeInfo | undefined): NodeInfo {
  if (signed === undefined || signed.nodeInfo.length > maxNodeInfoBytes) {
    throw new RpcError("INVALID_REQUEST", "There is no node info, or one that is too long.");
  }
  let nodeInfo: NodeInfo;
  try {
    nodeInfo = fromBinary(NodeInfoSchema, signed.nodeInfo);
  } catch {
    throw new RpcError("INVALID_REQUEST", "The node info cannot be read.");
  }
  const { identity } = nodeInfo;
  const bytes = Buffer.concat([signedPrefix, signed.nodeInfo]);
  if (!hex32.test(identity) || !verifyEd25519(identity, bytes, signed.signature)) {
    throw new RpcError("INVALID_SIGNATURE", "The node info is not signed by the identity that it names.");
  }
  return nodeInfo;
}
