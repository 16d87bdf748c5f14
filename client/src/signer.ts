/** Who signs: a key that the program has, or somebody who is asked, such as a wallet. */
import { bytesToHex, toBytes32 } from "./bytes.js";

/** Who signs transactions, and proves who reads. */
export interface Signer {
  /** The Ed25519 public key: 32 bytes, or 64 hex digits with 0x or without. */
  readonly publicKey: Uint8Array | string;
  /** The Ed25519 signature over these bytes as they are, 64 bytes; nothing is added before or hashed. */
  sign(bytes: Uint8Array): Uint8Array | Promise<Uint8Array>;
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
