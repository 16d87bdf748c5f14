/** Signing with a key in memory. A separate module, so that programs with their own signer do not load the curve. */
import { getPublicKey, hashes, sign } from "@noble/ed25519";
import { sha512 } from "@noble/hashes/sha2.js";
import { bytesToHex, decodeBase64, toBytes32 } from "./bytes.js";
import type { Signer } from "./signer.js";

/**
 * Creates a signer from a private key.
 *
 * @param seed its 32 bytes, or 64 hex digits.
 * @throws TypeError if the seed is not 32 bytes.
 */
export function keyFromSeed(seed: Uint8Array | string): Signer & { readonly publicKey: string } {
  // Computed here without WebCrypto, which is missing on pages without TLS and does not support Ed25519 in every
  // runtime.
  hashes.sha512 ??= sha512;
  const secret = toBytes32(seed, "A seed").slice();
  return { publicKey: `0x${bytesToHex(getPublicKey(secret))}`, sign: (bytes) => sign(bytes, secret) };
}

/**
 * PKCS #8 structure of an Ed25519 key (RFC 8410), in hex: the length of the rest, the version, the 32 bytes of the key,
 * then optional attributes and the optional public key.
 */
const keyForm = /^30(..)02010[01]300506032b657004220420([0-9a-f]{64})(?:a0(?:..)+?)?(?:812100[0-9a-f]{64})?$/;

/**
 * Creates a signer from a PEM text (PKCS #8, not encrypted), as `gatehouse keygen` and OpenSSL write it.
 *
 * @throws TypeError if the text is not an Ed25519 key.
 */
export function keyFromPem(pem: string): Signer & { readonly publicKey: string } {
  return keyFromSeed(seedFromPem(pem));
}

/**
 * Returns the private key of a PEM text as 64 hex digits.
 *
 * @throws TypeError if the text is not an Ed25519 key.
 */
export function seedFromPem(pem: string): string {
  const content = /-----BEGIN PRIVATE KEY-----([A-Za-z0-9+/=\s]+)-----END PRIVATE KEY-----/.exec(pem)?.[1];
  const bytes = content === undefined ? undefined : decodeBase64(content.replace(/\s/g, ""));
  const hex = bytes === undefined ? "" : bytesToHex(bytes);
  const [, length, seed] = keyForm.exec(hex) ?? [];
  if (seed === undefined || length !== (hex.length / 2 - 2).toString(16)) {
    throw new TypeError("The PEM text must hold an Ed25519 private key that is not encrypted (BEGIN PRIVATE KEY).");
  }
  return seed;
}
