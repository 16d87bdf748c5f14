/** Ed25519 keys, created only with node:crypto. */
import { createPrivateKey, createPublicKey, type KeyObject, randomBytes, sign } from "node:crypto";
import { writeFile } from "node:fs/promises";

/** A key that is the same in every run. */
export interface TestKey {
  /** 0x and 64 lower-case hex digits. */
  readonly publicKey: string;
  readonly privateKey: KeyObject;
  sign(bytes: Uint8Array): Buffer;
}

/** PKCS #8 before the 32 bytes of an Ed25519 key. */
const pkcs8Prefix = Buffer.from("302e020100300506032b657004220420", "hex");

/** Returns the key with a number from 0 to 255. */
export function testKey(number: number): TestKey {
  return keyOfSeed(Buffer.alloc(32, number));
}

/** Creates a random key. */
export function newKey(): TestKey {
  return keyOfSeed(randomBytes(32));
}

/** Returns the key of a seed of 32 bytes. */
export function keyOfSeed(seed: Buffer): TestKey {
  const der = Buffer.concat([pkcs8Prefix, seed]);
  const privateKey = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  const raw = createPublicKey(privateKey).export({ format: "der", type: "spki" }).subarray(-32);
  return {
    publicKey: `0x${raw.toString("hex")}`,
    privateKey,
    sign: (bytes) => sign(null, bytes, privateKey),
  };
}

/** Writes a key file. */
export async function writeKey(path: string, { privateKey }: TestKey): Promise<void> {
  await writeFile(path, privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 });
}

/** Returns the text of a genesis with these authorities. */
export function genesisOf(...keys: readonly TestKey[]): string {
  return JSON.stringify({ name: "test", authorities: keys.map(({ publicKey }) => publicKey) });
}
