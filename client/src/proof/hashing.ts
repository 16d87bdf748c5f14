/** Hashes and signatures of proofs, without Node.js, so that browsers can verify them. */
import { hashes, verify } from "@noble/ed25519";
import { sha256, sha512 } from "@noble/hashes/sha2.js";
import { createTreeHashes, hashBytes } from "../../../src/tree/hashes.js";
import { createTreeNodes } from "../../../src/tree/nodes.js";
import { createStateHashes } from "../../../src/tree/state-format.js";
import { bytesToHex, hexToBytes, utf8ToBytes } from "../bytes.js";
import { ProofError } from "./proof-error.js";

export const treeHashes = createTreeHashes(sha256);
export const treeNodes = createTreeNodes(treeHashes);
export const stateHashes = createStateHashes(treeHashes);

/** Returns the SHA-256 of bytes: 0x and 64 lower-case hex digits. */
export function hashOf(bytes: Uint8Array): string {
  return `0x${bytesToHex(sha256(bytes))}`;
}

/** Decodes a valid hash or key to bytes. */
export function bytesOf(hash: string): Uint8Array {
  return hexToBytes(hash.slice(2));
}

/**
 * Verifies an Ed25519 signature over bytes. Returns false for every signature under a key of small order or without
 * canonical encoding.
 *
 * @param publicKey 0x and 64 lower-case hex digits.
 */
export type VerifyEd25519 = (publicKey: string, bytes: Uint8Array, signature: Uint8Array) => boolean;

const verifyInJavaScript: VerifyEd25519 = (publicKey, bytes, signature) => {
  hashes.sha512 ??= sha512;
  try {
    return verify(signature, bytes, bytesOf(publicKey), { zip215: false });
  } catch {
    return false;
  }
};

/** Returns true if a key signed this prefix and content. */
export function isSigned(
  publicKey: string,
  prefix: string,
  content: Uint8Array,
  signature: Uint8Array,
  verifyEd25519 = verifyInJavaScript,
): boolean {
  const prefixBytes = utf8ToBytes(prefix);
  const message = new Uint8Array(prefixBytes.length + content.length);
  message.set(prefixBytes);
  message.set(content, prefixBytes.length);
  return verifyEd25519(publicKey, message, signature);
}

/**
 * Checks that the value has 32 bytes. Hash inputs are joined without lengths, so another length would make them
 * ambiguous.
 *
 * @throws ProofError malformed
 */
export function require32Bytes(bytes: Uint8Array, subject: string): Uint8Array {
  if (bytes.length !== hashBytes) {
    throw new ProofError("malformed", `${subject} in the proof has ${bytes.length} bytes, not ${hashBytes}.`);
  }
  return bytes;
}
