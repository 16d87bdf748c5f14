/** Who signs: a key that the program has, or somebody who is asked, such as a wallet. */
import { getPublicKey, hashes, sign } from "@noble/ed25519";
import { sha512 } from "@noble/hashes/sha2.js";
import { bytesToHex, toBytes32 } from "./bytes.js";

/** Who signs transactions, and proves who reads. */
export interface Signer {
  /** The Ed25519 public key: 32 bytes, or 64 hex digits with 0x or without. */
  readonly publicKey: Uint8Array | string;
  /** The Ed25519 signature over these bytes as they are, 64 bytes; nothing is added before or hashed. */
  sign(bytes: Uint8Array): Uint8Array | Promise<Uint8Array>;
}

/**
 * Signs with a key.
 *
 * @param seed its 32 bytes, or 64 hex digits.
 * @throws TypeError when it is none.
 */
export function keyFromSeed(seed: Uint8Array | string): Signer & { readonly publicKey: string } {
  // Computed here and not by WebCrypto: pages without TLS have none of it, and not every runtime knows this curve.
  hashes.sha512 ??= sha512;
  const secret = toBytes32(seed, "A seed").slice();
  return { publicKey: `0x${bytesToHex(getPublicKey(secret))}`, sign: (bytes) => sign(bytes, secret) };
}

/** PKCS #8 before the 32 bytes of an Ed25519 key (RFC 8410), without the first two bytes, the length of all of it. */
const beforeSeed = /^30..02010[01]300506032b657004220420/;

/**
 * Signs with the key of a PEM text (PKCS #8, not encrypted), as `gatehouse keygen` and OpenSSL write it.
 *
 * @throws TypeError when it is no Ed25519 key.
 */
export function keyFromPem(pem: string): Signer & { readonly publicKey: string } {
  const content = /-----BEGIN PRIVATE KEY-----([A-Za-z0-9+/=\s]+)-----END PRIVATE KEY-----/.exec(pem)?.[1];
  const binary = content === undefined ? "" : fromBase64(content.replace(/\s/g, ""));
  const hex = bytesToHex(Uint8Array.from(binary, (character) => character.charCodeAt(0)));
  const prefix = beforeSeed.exec(hex)?.[0];
  const seed = prefix === undefined ? "" : hex.slice(prefix.length, prefix.length + 64);
  if (seed.length !== 64) {
    throw new TypeError("The PEM text must hold an Ed25519 private key that is not encrypted (BEGIN PRIVATE KEY).");
  }
  return keyFromSeed(seed);
}

function fromBase64(text: string): string {
  try {
    return atob(text);
  } catch {
    return "";
  }
}

/** A signer whose public key is 0x and 64 lower-case hex digits, and whose signatures have 64 bytes. */
export interface KnownSigner {
  readonly publicKey: string;
  readonly sign: (bytes: Uint8Array) => Promise<Uint8Array>;
}

/**
 * Checks what a caller gave.
 *
 * @throws TypeError when the public key is none.
 */
export function toKnownSigner(signer: Signer): KnownSigner {
  return {
    publicKey: `0x${bytesToHex(toBytes32(signer.publicKey, "A signer's publicKey"))}`,
    async sign(bytes) {
      const signature = await signer.sign(bytes);
      if (!(signature instanceof Uint8Array) || signature.length !== 64) {
        throw new TypeError("A signer's sign() must give the 64 bytes of an Ed25519 signature.");
      }
      return signature;
    },
  };
}
