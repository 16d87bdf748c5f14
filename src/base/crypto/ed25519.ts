/** Verification of Ed25519 signatures by public keys in hex. */
import { createPublicKey, type KeyObject, verify } from "node:crypto";
import { createLruCache } from "../caches/lru-cache.js";
import { isStrongKey, rawKey } from "./key-validation.js";

/** DER prefix of a public key, before its 32 bytes (RFC 8410). */
const derPrefix = Buffer.from("302a300506032b6570032100", "hex");

/** Parsed keys by their text. A signer usually signs again soon. Invalid keys are not cached. */
const parsedKeys = createLruCache<KeyObject>(1_000);

/**
 * Returns true if the key signed these bytes. Rejects every signature under a weak key, see {@link isStrongKey}.
 *
 * @param publicKey 64 hex digits, 0x optional.
 * @param signature 64 bytes.
 */
export function verifyEd25519(publicKey: string, bytes: Uint8Array, signature: Uint8Array): boolean {
  const key = signature.length === 64 ? parseKey(publicKey) : undefined;
  return key !== undefined && verify(null, bytes, key, signature);
}

/**
 * Verifies a signature as {@link verifyEd25519} does, in a thread of the libuv pool. Submit a large set a few at a
 * time, because database queries use the same pool.
 */
export function verifyEd25519OffThread(publicKey: string, bytes: Uint8Array, signature: Uint8Array): Promise<boolean> {
  const key = signature.length === 64 ? parseKey(publicKey) : undefined;
  return key === undefined
    ? Promise.resolve(false)
    : new Promise((resolve, reject) => {
        verify(null, bytes, key, signature, (error, isValid) => (error === null ? resolve(isValid) : reject(error)));
      });
}

function parseKey(publicKey: string): KeyObject | undefined {
  let key = parsedKeys.get(publicKey);
  if (key === undefined && publicKey.length <= 66 && isStrongKey(publicKey)) {
    key = createPublicKey({ key: Buffer.concat([derPrefix, rawKey(publicKey)]), format: "der", type: "spki" });
    parsedKeys.set(publicKey, key);
  }
  return key;
}
