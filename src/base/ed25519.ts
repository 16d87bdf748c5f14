/** Ed25519 signatures, by the public keys that the network's texts carry. */
import { createPublicKey, type KeyObject, verify } from "node:crypto";

/** What comes before the 32 bytes of a public key in DER (RFC 8410). */
const derPrefix = Buffer.from("302a300506032b6570032100", "hex");

/**
 * Whether the signature over these bytes was made with the key.
 *
 * @param publicKey 64 hex digits, 0x optional.
 * @param signature 64 bytes.
 */
export function verifyEd25519(publicKey: string, bytes: Uint8Array, signature: Uint8Array): boolean {
  return signature.length === 64 && verify(null, bytes, toKeyObject(publicKey), signature);
}

function toKeyObject(publicKey: string): KeyObject {
  const raw = Buffer.from(publicKey.replace(/^0x/, ""), "hex");
  return createPublicKey({ key: Buffer.concat([derPrefix, raw]), format: "der", type: "spki" });
}
