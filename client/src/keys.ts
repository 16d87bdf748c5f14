/** Signing with a key in memory. A separate module, so that programs with their own signer do not load the curve. */
import { getPublicKey, hashes, sign } from "@noble/ed25519";
import { sha512 } from "@noble/hashes/sha2.js";
import { bytesToHex, toBytes32 } from "./bytes.js";
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

/** PKCS #8 prefix of the 32 bytes of an Ed25519 key (RFC 8410). The second byte is the length of the outer sequence. */
const seedPrefix = /^30..02010[01]300506032b657004220420/;

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
  const binary = content === undefined ? "" : fromBase64(content.replace(/\s/g, ""));
  const hex = bytesToHex(Uint8Array.from(binary, (character) => character.charCodeAt(0)));
  const prefix = seedPrefix.exec(hex)?.[0];
  const seed = prefix === undefined ? "" : hex.slice(prefix.length, prefix.length + 64);
  if (seed.length !== 64) {
    throw new TypeError("The PEM text must hold an Ed25519 private key that is not encrypted (BEGIN PRIVATE KEY).");
  }
  return seed;
}

function fromBase64(text: string): string {
  try {
    return atob(text);
  } catch {
    return "";
  }
}
