/** Derives encryption keys from passphrases. */

/** Number of hash iterations, which OWASP recommends for PBKDF2 with SHA-256. */
export const iterations = 600_000;

/** Parameters of a derived key. */
export interface Derivation {
  readonly salt: Uint8Array<ArrayBuffer>;
  readonly iterations: number;
  readonly cipher: "AES-GCM" | "AES-CBC";
  readonly usage: "encrypt" | "decrypt";
}

/** Derives a key of 256 bits by PBKDF2 with SHA-256. Equal passphrases in different Unicode forms give the same key. */
export async function deriveKey(
  passphrase: string,
  { salt, iterations, cipher, usage }: Derivation,
): Promise<CryptoKey> {
  const bytes = new TextEncoder().encode(passphrase.normalize("NFKC"));
  const material = await crypto.subtle.importKey("raw", bytes, "PBKDF2", false, ["deriveKey"]);
  const parameters = { name: "PBKDF2", hash: "SHA-256", salt, iterations };
  return await crypto.subtle.deriveKey(parameters, material, { name: cipher, length: 256 }, false, [usage]);
}
