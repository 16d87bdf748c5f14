/** Ed25519 signatures, by the public keys that the network's texts carry. */
import { createPublicKey, type KeyObject, verify } from "node:crypto";
import { createLruCache } from "../caches/lru-cache.js";
import { isStrongKey, rawKey } from "./key-validation.js";

/** What comes before the 32 bytes of a public key in DER (RFC 8410). */
const derPrefix = Buffer.from("302a300506032b6570032100", "hex");

/** Keys that were read: of who signs once, more is to be verified soon. None is kept under a text that is no key. */
const known = createLruCache<KeyObject>(1_000);

/**
 * Whether the signature over these bytes was made with the key. Of a key that can be nobody's, none was.
 *
 * @param publicKey 64 hex digits, 0x optional.
 * @param signature 64 bytes.
 */
export function verifyEd25519(publicKey: string, bytes: Uint8Array, signature: Uint8Array): boolean {
  const key = signature.length === 64 ? readKey(publicKey) : undefined;
  return key !== undefined && verify(null, bytes, key, signature);
}

/**
 * The same in a thread of the pool that Node.js has, beside which the caller goes on. Whoever has much to verify hands over
 * a few at a time: queries of the database wait for the same threads.
 */
export function verifyEd25519OffThread(publicKey: string, bytes: Uint8Array, signature: Uint8Array): Promise<boolean> {
  const key = signature.length === 64 ? readKey(publicKey) : undefined;
  return key === undefined
    ? Promise.resolve(false)
    : new Promise((resolve, reject) => {
        verify(null, bytes, key, signature, (error, isRight) => (error === null ? resolve(isRight) : reject(error)));
      });
}

function readKey(publicKey: string): KeyObject | undefined {
  let key = known.get(publicKey);
  if (key === undefined && publicKey.length <= 66 && isStrongKey(publicKey)) {
    key = createPublicKey({ key: Buffer.concat([derPrefix, rawKey(publicKey)]), format: "der", type: "spki" });
    known.set(publicKey, key);
  }
  return key;
}
