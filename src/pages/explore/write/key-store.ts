/** Private keys that the browser stores, each encrypted with a passphrase. */
import { base64Decode, base64Encode } from "@bufbuild/protobuf/wire";
import { bytesToHex, hexToBytes } from "../../../../client/src/bytes.js";
import { keyFromSeed } from "../../../../client/src/keys.js";
import { deriveKey, iterations } from "./derive-key.js";

/** Stored key. Its members name the algorithms, so that later versions can read it. */
export interface StoredKey {
  readonly version: 1;
  /** Public key, 0x and 64 lower-case hex digits. */
  readonly publicKey: string;
  readonly kdf: { readonly name: "PBKDF2-SHA-256"; readonly iterations: number; readonly salt: string };
  readonly cipher: { readonly name: "AES-256-GCM"; readonly iv: string };
  /** Encrypted 32 bytes of the private key, in base64. The public key is authenticated with it. */
  readonly ciphertext: string;
}

const storageName = "gatehouse.keys";
export const minPassphraseLength = 10;

/** Error for a browser that cannot store keys. */
export const insecureText =
  "This page cannot store or use keys for writing: the browser permits encryption only over HTTPS or on your own machine (localhost).";

/** Returns true if the browser permits encryption on this page. */
export function isSecure(): boolean {
  return globalThis.isSecureContext;
}

/** Returns the stored keys; none if the browser blocks storage. */
export function listKeys(): readonly StoredKey[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(storageName) ?? "[]");
    return Array.isArray(stored) ? stored.filter(isStoredKey) : [];
  } catch {
    return [];
  }
}

/**
 * Encrypts and stores a key, in place of one with the same public key.
 *
 * @param seed 64 hex digits.
 * @throws TypeError if the seed is not one, or if the passphrase is too short.
 */
export async function storeKey(seed: string, passphrase: string): Promise<StoredKey> {
  if (passphrase.length < minPassphraseLength) {
    throw new TypeError(`The passphrase must have at least ${minPassphraseLength} characters.`);
  }
  const { publicKey } = keyFromSeed(seed);
  const [salt, iv] = [crypto.getRandomValues(new Uint8Array(16)), crypto.getRandomValues(new Uint8Array(12))];
  const key = await deriveKey(passphrase, { salt, iterations, cipher: "AES-GCM", usage: "encrypt" });
  const bytes = Uint8Array.from(hexToBytes(seed));
  const ciphertext = await crypto.subtle.encrypt({ name: "AES-GCM", iv, additionalData: utf8(publicKey) }, key, bytes);
  const stored: StoredKey = {
    version: 1,
    publicKey,
    kdf: { name: "PBKDF2-SHA-256", iterations, salt: base64Encode(salt) },
    cipher: { name: "AES-256-GCM", iv: base64Encode(iv) },
    ciphertext: base64Encode(new Uint8Array(ciphertext)),
  };
  writeKeys([...listKeys().filter((other) => other.publicKey !== publicKey), stored]);
  return stored;
}

/**
 * Returns the seed of a stored key as 64 hex digits.
 *
 * @throws Error if the passphrase is wrong.
 */
export async function unlockKey(
  { publicKey, kdf, cipher, ciphertext }: StoredKey,
  passphrase: string,
): Promise<string> {
  const salt = base64Decode(kdf.salt);
  const key = await deriveKey(passphrase, {
    ...{ salt, iterations: kdf.iterations, cipher: "AES-GCM", usage: "decrypt" },
  });
  const parameters = { name: "AES-GCM", iv: base64Decode(cipher.iv), additionalData: utf8(publicKey) };
  try {
    const bytes = await crypto.subtle.decrypt(parameters, key, base64Decode(ciphertext));
    return bytesToHex(new Uint8Array(bytes));
  } catch {
    throw new Error("The passphrase is wrong.");
  }
}

/** Deletes a stored key. */
export function deleteKey(publicKey: string): void {
  writeKeys(listKeys().filter((key) => key.publicKey !== publicKey));
}

function writeKeys(keys: readonly StoredKey[]): void {
  try {
    localStorage.setItem(storageName, JSON.stringify(keys));
  } catch {
    throw new Error("The browser does not permit this page to store keys.");
  }
}

function utf8(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

function isStoredKey(value: unknown): value is StoredKey {
  const { version, publicKey, kdf, cipher, ciphertext } = Object(value) as Partial<StoredKey>;
  return (
    version === 1 &&
    /^0x[0-9a-f]{64}$/.test(publicKey ?? "") &&
    typeof kdf?.salt === "string" &&
    Number.isInteger(kdf.iterations) &&
    typeof cipher?.iv === "string" &&
    typeof ciphertext === "string"
  );
}
