/** Generates examples/vectors/keys.json: Ed25519 keys as seeds, in files, and in the forms of the network. */
import { createPublicKey } from "node:crypto";
import { keyOfSeed, type TestKey } from "../../../test/helpers/chain/keys.js";

/** Publicly known key. */
export interface VectorKey extends TestKey {
  /** Seed of 32 bytes, as 64 hex digits. */
  readonly seed: string;
}

/** PKCS #8 prefix of the 32 bytes of the seed (RFC 8410), by the last byte of the algorithm identifier. */
const pkcs8Prefix = (algorithm: "70" | "6e"): string => `302e020100300506032b65${algorithm}04220420`;

const keyOf = (seed: string): VectorKey => ({ seed, ...keyOfSeed(Buffer.from(seed, "hex")) });

/** Keys of the first three tests in RFC 8032, so that other implementations know them. */
export const alice = keyOf("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
export const bob = keyOf("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb");
export const carol = keyOf("c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7");

/** Public key of small order: the neutral element of the curve. */
export const weakKey = `0x01${"00".repeat(31)}`;

/** Signature by {@link weakKey} that is valid for any message and needs no secret: the base point, and 1. */
export const weakSignature = Buffer.from(`58${"66".repeat(31)}01${"00".repeat(31)}`, "hex");

export function keyVectors(): string {
  const keys = { alice, bob, carol, zeros: keyOf("00".repeat(32)) };
  return JSON.stringify({
    keys: Object.entries(keys).map(([name, { seed, publicKey, privateKey }]) => ({
      name,
      seed,
      publicKey,
      pem: privateKey.export({ type: "pkcs8", format: "pem" }),
    })),
    refused: [
      {
        name: "a key of X25519",
        why: "It agrees on secrets, and signs nothing; its file differs in one byte.",
        pem: pem("PRIVATE KEY", pkcs8Prefix("6e") + alice.seed),
      },
      {
        name: "a public key",
        why: "Nothing can be signed with it.",
        pem: createPublicKey(alice.privateKey).export({ type: "spki", format: "pem" }),
      },
      {
        name: "a seed of 31 bytes",
        why: "The lengths of the file still say 32.",
        pem: pem("PRIVATE KEY", pkcs8Prefix("70") + alice.seed.slice(2)),
      },
    ],
    refusedPublicKeys: [
      { name: "small order, y = 1", publicKey: weakKey },
      { name: "small order, y = 0", publicKey: `0x${"00".repeat(32)}` },
      { name: "not canonical: y is the prime", publicKey: `0xed${"ff".repeat(30)}7f` },
    ],
  });
}

function pem(label: string, hex: string): string {
  return `-----BEGIN ${label}-----\n${Buffer.from(hex, "hex").toString("base64")}\n-----END ${label}-----\n`;
}
