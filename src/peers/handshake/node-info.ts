/**
 * Node infos: statements of nodes about themselves in a handshake. The signature covers a challenge of the other node,
 * which prevents replays.
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
