/** Signers: a key in memory, or an external signer such as a wallet. */
import { bytesToHex, toBytes32 } from "./bytes.js";

/** Signs transactions, and proves the identity of the reader. */
export interface Signer {
  /** Ed25519 public key: 32 bytes, or 64 hex digits, 0x optional. */
  readonly publicKey: Uint8Array | string;
  /** Returns the Ed25519 signature over exactly these bytes, 64 bytes long. Must not hash the bytes or add a prefix. */
  sign(bytes: Uint8Array): Uint8Array | Promise<Uint8Array>;
}

/** Validated signer: its public key is 0x and 64 lower-case hex digits, its signatures have 64 bytes. */
export interface ValidSigner {
  readonly publicKey: string;
  readonly sign: (bytes: Uint8Array) => Promise<Uint8Array>;
}

/**
 * Validates a signer.
 *
 * @throws TypeError if the public key is invalid.
 */
export function validateSigner(signer: Signer): ValidSigner {
  return {
    publicKey: `0x${bytesToHex(toBytes32(signer.publicKey, "A signer's publicKey"))}`,
    async sign(bytes) {
      const signature = await signer.sign(bytes);
      if (!(signature instanceof Uint8Array) || signature.length !== 64) {
        throw new TypeError("A signer's sign() must return the 64 bytes of an Ed25519 signature.");
      }
      return signature;
    },
  };
}
